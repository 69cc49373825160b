from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.differential.native import check_native
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU, ON_GPU
from tests.passes.random_graphs import assert_same_results
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import BF16, BOOL, F16, F32, DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import tensor
from tilewright.ops.attention.attention import AttentionAttrs, MaskAttrs
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.reduction.softmax import FULLY_MASKED, SoftmaxAttrs
from tilewright.passes.attention.fuse_attention import fuse_attention
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.canonicalize.decompose import decompose

HEADS, SIZE, QUERIES, KEYS = 3, 4, 5, 6
TURN = make_attrs("transpose", {"perm": (0, 2, 1, 3)})
TURN_KEYS = make_attrs("transpose", {"perm": (0, 2, 3, 1)})


class Builder(GraphBuilder):
    """Operands `[batch, length, heads, size]`, and the scores of them."""

    def operands(self, dtype: DType = F32, queries: object = QUERIES, keys: object = KEYS) -> None:
        q = self.input("q", tensor(dtype, 2, queries, HEADS, SIZE))
        k = self.input("k", tensor(dtype, 2, keys, HEADS, SIZE))
        v = self.input("v", tensor(dtype, 2, keys, HEADS, SIZE))
        self.q = self.add("transpose", q, attrs=TURN)
        self.k = self.add("transpose", k, attrs=TURN_KEYS)
        self.v = self.add("transpose", v, attrs=TURN)

    def number(self, value: float) -> str:
        return self.constant(np.asarray(value, np.float32))

    def finished(self, scores: str, fully_masked: str = "nan") -> Graph:
        attrs = SoftmaxAttrs(-1, fully_masked)
        y = self.add("matmul", self.add("softmax", scores, attrs=attrs), self.v)
        return self.graph(self.add("transpose", y, attrs=TURN))


def _plain() -> Builder:
    g = Builder("f")
    g.operands()
    return g


def _formed(graph: Graph) -> Node:
    """The one node that is left, after checking that it means the same."""
    after = dce(fuse_attention(graph, ON_CPU), ON_CPU)
    assert_same_results(graph, after, rtol=1e-5)
    assert fuse_attention(after, ON_CPU) is after
    others = [n.op for n in after.nodes if n.op != "fused_attention"]
    assert others in ([], ["not"], ["mul"]), others
    return next(n for n in after.nodes if n.op == "fused_attention")


def _refused(graph: Graph) -> None:
    assert all(n.op != "fused_attention" for n in fuse_attention(graph, ON_CPU).nodes)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("mask_heads", [0, 1, 6])
def test_heads_that_share_keys_are_one_attention(flat: bool, mask_heads: int) -> None:
    g = GraphBuilder("f")
    heads = {"q": 6, "k": 3, "v": 3}
    shapes = {n: (2, 5, h * SIZE) if flat else (2, h, 5, SIZE) for n, h in heads.items()}
    given = [g.input(n, tensor(F32, *shape)) for n, shape in shapes.items()]
    if mask_heads:
        given.append(g.input("m", tensor(F32, 2, mask_heads, 5, 5)))
    attrs = AttentionAttrs(6, 3, causal=True)
    graph = dce(decompose(g.graph(g.add("attention", *given, attrs=attrs)), ON_CPU), ON_CPU)
    after = dce(fuse_attention(graph, ON_CPU), ON_CPU)
    assert_same_results(graph, after, rtol=1e-5)
    assert {n.op for n in after.nodes} == {"fused_attention", "reshape"}


def test_heads_are_read_and_written_where_they_lie() -> None:
    g = _plain()
    node = _formed(g.finished(g.add("matmul", g.q, g.k)))
    assert node.inputs == ("q", "k", "v")
    order = (0, 2, 1, 3)
    assert node.attrs == FusedAttentionAttrs(q_perm=order, k_perm=order, v_perm=order, y_perm=order)


SCALES: dict[str, Callable[[Builder], str]] = {
    "scores": lambda g: g.add("mul", g.add("matmul", g.q, g.k), g.number(0.5)),
    "divided": lambda g: g.add("div", g.add("matmul", g.q, g.k), g.number(2.0)),
    "queries": lambda g: g.add("matmul", g.add("mul", g.q, g.number(0.5)), g.k),
    "keys": lambda g: g.add("matmul", g.q, g.add("mul", g.number(0.5), g.k)),
    "both": lambda g: g.add(
        "matmul",
        g.add("mul", g.q, g.number(np.sqrt(0.5))),
        g.add("mul", g.k, g.number(np.sqrt(0.5))),
    ),
}


@for_each("spelling", SCALES)
def test_scales_are_brought_together(spelling: str) -> None:
    g = _plain()
    node = _formed(g.finished(SCALES[spelling](g)))
    assert node.attrs.scale == pytest.approx(0.5)
    assert len(node.inputs) == 3


@for_each("fully_masked", FULLY_MASKED)
@for_each("shape", [(2, 1, 1, KEYS), (QUERIES, KEYS), (HEADS, 1, KEYS)])
@for_each("swapped", [False, True])
def test_added_masks(fully_masked: str, shape: tuple[int, ...], swapped: bool) -> None:
    g = _plain()
    mask = g.input("m", tensor(F32, *shape))
    scores = g.add("mul", g.add("matmul", g.q, g.k), g.number(0.5))
    scores = g.add("add", *((mask, scores) if swapped else (scores, mask)))
    node = _formed(g.finished(scores, fully_masked))
    assert node.inputs == ("q", "k", "v", "m")
    assert node.attrs.fully_masked == fully_masked


@for_each("inverted", [False, True])
@for_each("hidden", [-np.inf, -100.0])
def test_chosen_scores(inverted: bool, hidden: float) -> None:
    g = _plain()
    mask = g.input("m", tensor(BOOL, 2, 1, 1, KEYS))
    scores, other = g.add("matmul", g.q, g.k), g.number(hidden)
    pair = (other, scores) if inverted else (scores, other)
    node = _formed(g.finished(g.add("where", mask, *pair), "finite"))
    assert node.attrs.masked_value == hidden


def test_a_constant_mask_that_hides_what_comes_later_is_a_band() -> None:
    for low in (-np.inf, np.finfo(np.float32).min):
        g = _plain()
        later = np.triu(np.full((1, 1, QUERIES, KEYS), low, np.float32), 2)
        scores = g.add("add", g.add("matmul", g.q, g.k), g.constant(later))
        node = _formed(g.finished(scores))
        assert len(node.inputs) == 3
        assert (node.attrs.window_right, node.attrs.offset) == (0, const(1))


def test_other_constant_masks() -> None:
    for mask, inputs in [
        (np.zeros((QUERIES, KEYS), np.float32), 3),
        (np.triu(np.full((QUERIES, KEYS), -np.inf, np.float32), 1) + np.eye(5, 6, -1, "f"), 4),
        (np.tril(np.full((QUERIES, KEYS), -np.inf, np.float32), -1), 4),
        (np.triu(np.full((QUERIES, KEYS), -9, np.float32), 1), 4),
    ]:
        g = _plain()
        scores = g.add("add", g.add("matmul", g.q, g.k), g.constant(mask))
        assert len(_formed(g.finished(scores)).inputs) == inputs


def _hiding(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return np.where(rng.random(shape) < 0.3, -1e4, 0).astype(np.float32)


@for_each("order", ["add add", "add where", "where add"])
@for_each("swapped", [False, True])
def test_two_masks(order: str, swapped: bool) -> None:
    rng = np.random.default_rng(3)
    g = _plain()
    scores = g.add("mul", g.add("matmul", g.q, g.k), g.number(0.5))
    added = iter(
        [g.constant(_hiding(rng, 1, HEADS, QUERIES, KEYS)), g.input("m", tensor(F32, KEYS))]
    )
    for step in order.split():
        if step == "where":
            chosen = g.input("c", tensor(BOOL, 2, 1, QUERIES, KEYS))
            scores = g.add("where", chosen, scores, g.number(np.finfo(np.float32).min))
        else:
            mask = next(added)
            scores = g.add("add", *((mask, scores) if swapped else (scores, mask)))
    node = _formed(g.finished(scores))
    assert len(node.inputs) == 6
    assert node.attrs.bias_last == (order == "where add")


def test_a_computed_mask_of_the_scores_shape_is_told_from_the_scores() -> None:
    g = _plain()
    shape = (2, HEADS, QUERIES, KEYS)
    mask = g.add("mul", g.input("m", tensor(F32, *shape)), g.input("f", tensor(F32, *shape)))
    graph = g.finished(g.add("add", mask, g.add("matmul", g.q, g.k)))
    assert any(n.op == "fused_attention" for n in fuse_attention(graph, ON_CPU).nodes)


@pytest.mark.parametrize("step", ["add", "where"])
def test_scaled_after_the_mask(step: str) -> None:
    g = _plain()
    scores = g.add("matmul", g.q, g.k)
    if step == "add":
        scores = g.add("add", scores, g.input("m", tensor(F32, QUERIES, KEYS)))
    else:
        chosen = g.input("m", tensor(BOOL, QUERIES, KEYS))
        scores = g.add("where", chosen, scores, g.number(-8.0))
    node = _formed(g.finished(g.add("div", scores, g.number(4.0))))
    assert node.attrs.scale == 0.25
    assert node.attrs.masked_value == (-2.0 if step == "where" else -np.inf)


@for_each("low", [-np.inf, float(np.finfo(np.float32).min)])
@for_each("band_last", [False, True])
def test_a_band_beside_another_mask(low: float, band_last: bool) -> None:
    """Finite numbers hide nothing from a row whose other keys are hidden by -inf."""
    g = _plain()
    later = g.constant(np.triu(np.full((QUERIES, KEYS), low, np.float32), 1))
    first = np.zeros((1, KEYS), np.float32)
    first[0, 0] = low
    masks = [g.constant(first), later] if band_last else [later, g.constant(first)]
    scores = g.add("matmul", g.q, g.k)
    for mask in masks:
        scores = g.add("add", scores, mask)
    node = _formed(g.finished(scores, "finite"))
    assert (node.attrs.window_right == 0) == np.isinf(low)


def test_bands_and_caps_of_the_attention_operator() -> None:
    g = _plain()
    scores = g.add("mul", g.add("matmul", g.q, g.k), g.number(0.5))
    cap = g.number(1.5)
    scores = g.add("mul", g.add("tanh", g.add("div", scores, cap)), cap)
    mask = g.input("m", tensor(F32, QUERIES, KEYS))
    scores = g.add("mask_scores", scores, mask, "", attrs=MaskAttrs(const(1), 2, 0))
    node = _formed(g.finished(scores, "zero"))
    assert node.attrs.softcap == pytest.approx(1.5)
    assert node.attrs.scale == pytest.approx(0.5)
    assert (node.attrs.window_left, node.attrs.window_right) == (2, 0)


def test_symbolic_lengths() -> None:
    g = Builder("f")
    g.operands(queries=Var("N"), keys=Var("N"))
    _formed(g.finished(g.add("matmul", g.q, g.k)))


def test_values_of_one_column_stay() -> None:
    g = GraphBuilder("f")
    q, k = (g.input(name, tensor(F32, 2, *s)) for name, s in (("q", (5, 1)), ("k", (1, 6))))
    v = g.input("v", tensor(F32, 2, 6, 1))
    graph = g.graph(g.add("matmul", g.add("softmax", g.add("matmul", q, k)), v))
    _refused(graph)
    shapes = {"q": (2, 5, 1), "k": (2, 1, 6), "v": (2, 6, 1)}
    rng = np.random.default_rng(0)
    check_native(graph, {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()})


def test_what_is_read_elsewhere_stays() -> None:
    g = _plain()
    scores = g.add("matmul", g.q, g.k)
    weights = g.add("softmax", scores)
    _refused(g.graph(g.add("matmul", weights, g.v), weights))
    _refused(g.graph(g.add("matmul", weights, g.v), scores))


def test_what_is_no_attention_stays() -> None:
    g = _plain()
    product = g.add("matmul", g.q, g.k)
    _refused(g.finished(g.add("exp", product)))
    mask = g.input("m", tensor(F32, QUERIES, KEYS))
    _refused(g.finished(g.add("mul", product, g.number(0.0))))
    g = _plain()
    mask = g.input("m", tensor(F32, QUERIES, KEYS))
    scores = g.add("matmul", g.q, g.k)
    for _ in range(3):
        scores = g.add("add", scores, mask)
    _refused(g.finished(scores))
    g = _plain()
    mask = g.input("m", tensor(F32, QUERIES, KEYS))
    capped = g.add("tanh", g.add("mul", g.add("add", g.add("matmul", g.q, g.k), mask), g.number(2)))
    _refused(g.finished(g.add("mul", capped, g.number(0.5))))
    g = _plain()
    product = g.add("matmul", g.q, g.k)
    axis = make_attrs("softmax", {"axis": 1})
    weights = g.add("softmax", product, attrs=axis)
    _refused(g.graph(g.add("matmul", weights, g.v)))
    narrow = Builder("h")
    narrow.operands(BF16)
    _refused(narrow.finished(narrow.add("matmul", narrow.q, narrow.k)))


@for_each("dtype", [F16, BF16])
@for_each("size", [24, 64])
def test_no_scale_is_rounded_to_the_type_of_operands(dtype: DType, size: int) -> None:
    g = GraphBuilder("f")
    given = [g.input(n, tensor(dtype, 2, 3, 32, size)) for n in "qkv"]
    y = g.add("attention", *given, attrs=AttentionAttrs())
    graph = dce(decompose(g.graph(y), ON_GPU), ON_GPU)
    (node,) = dce(fuse_attention(graph, ON_GPU), ON_GPU).nodes
    assert isinstance(node.attrs, FusedAttentionAttrs)
    assert node.attrs.scale == float(np.float32(1 / np.sqrt(size)))
