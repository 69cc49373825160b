from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import assert_same_results
from tilewright.core.dtypes import BOOL, F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.attention.fuse_attention import fuse_attention
from tilewright.passes.attention.unbroadcast_masks import one_row
from tilewright.passes.canonicalize.dce import dce

BATCH, HEADS, QUERIES, KEYS, SIZE = 2, 3, 5, 6, 4


def _attended(g: GraphBuilder, *masks: str) -> Graph:
    """Attention under a mask, as many layers of it as there are masks."""
    shapes = {"q": (QUERIES, SIZE), "kt": (SIZE, KEYS), "v": (KEYS, SIZE)}
    q, kt, v = (g.input(n, tensor(F32, BATCH, HEADS, *s)) for n, s in shapes.items())
    for mask in masks:
        scores = g.add("add", g.add("matmul", q, kt), mask)
        q = g.add("matmul", g.add("softmax", scores), v)
    return g.graph(q)


def _mask(g: GraphBuilder, every: np.ndarray, *shape: int) -> str:
    """What hides padding where `every` lets it."""
    seen = g.add("and", g.constant(every), g.input("m", tensor(BOOL, *shape)))
    low = g.constant(np.asarray(-100, np.float32))
    return g.add("where", seen, g.constant(np.asarray(0, np.float32)), low)


def _shapes(graph: Graph) -> list[tuple[int, ...] | None]:
    """The shape of each layer's mask, after checking that all means the same."""
    after = dce(fuse_attention(graph, ON_CPU), ON_CPU)
    assert_same_results(graph, after, rtol=1e-5)
    types = after.types
    return [types[n.inputs[3]].static_shape for n in after.nodes if n.op == "fused_attention"]


def test_a_mask_of_keys_is_one_row() -> None:
    g = GraphBuilder("f")
    every = np.ones((1, 1, QUERIES, KEYS), bool)
    mask = _mask(g, every, BATCH, 1, 1, KEYS)
    graph = _attended(g, mask, mask)
    assert _shapes(graph) == [(BATCH, 1, 1, KEYS)] * 2
    after = dce(fuse_attention(graph, ON_CPU), ON_CPU)
    assert [n.op for n in after.nodes] == ["and", "where", "fused_attention", "fused_attention"]


def test_rows_that_differ_stay() -> None:
    g = GraphBuilder("f")
    every = np.tri(QUERIES, KEYS, dtype=bool)
    assert _shapes(_attended(g, _mask(g, every, BATCH, 1, 1, KEYS))) == [(BATCH, 1, QUERIES, KEYS)]
    g = GraphBuilder("f")
    every = np.ones((QUERIES, KEYS), bool)
    mask = _mask(g, every, BATCH, 1, QUERIES, 1)
    assert _shapes(_attended(g, mask)) == [(BATCH, 1, QUERIES, KEYS)]


@for_each("keys", [1, KEYS])
def test_what_was_expanded(keys: int) -> None:
    g = GraphBuilder("f")
    whole = make_attrs("expand", {"shape": (BATCH, 1, QUERIES, KEYS)})
    mask = g.add("expand", g.input("m", tensor(F32, BATCH, 1, 1, keys)), attrs=whole)
    rows = 1 if keys == KEYS else QUERIES
    assert _shapes(_attended(g, mask)) == [(BATCH, 1, rows, KEYS)]


def test_constants() -> None:
    same = np.broadcast_to(np.arange(4.0), (2, 3, 4))
    assert one_row(same).shape == (1, 1, 4)
    rows = np.broadcast_to(np.arange(3.0)[:, None], (2, 3, 4))
    assert one_row(rows).shape == (1, 3, 4)
    assert one_row(np.zeros(4)).shape == (4,)
    different = np.arange(12.0).reshape(3, 4)
    assert one_row(different) is different
    assert one_row(np.zeros((0, 4))).shape == (0, 4)
