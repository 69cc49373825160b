from __future__ import annotations

import numpy as np

from tests.differential.kernel_graphs import KERNELS
from tests.differential.native import random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, random_graph, sample_inputs
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.layout.choose_layouts import choose_layouts
from tilewright.passes.layout.sink_transposes import sink_transpose, sinks_through
from tilewright.passes.rewriter import rewrite_graph


class _Maker(GraphBuilder):
    def __call__(self, op: str, *inputs: str, **values: object) -> str:
        return self.add(op, *inputs, attrs=make_attrs(op, values) if values else None)


def _sunk(graph: Graph, inputs: dict[str, np.ndarray] | None = None) -> list[str]:
    after = dce(rewrite_graph(graph, sink_transpose), ON_CPU)
    verify_graph(after)
    check_types(after)
    inputs = random_inputs(graph) if inputs is None else inputs
    expected, found = run_graph(graph, inputs), run_graph(after, inputs)
    for old, new in zip(graph.outputs, after.outputs, strict=True):
        np.testing.assert_allclose(found[new], expected[old], rtol=1e-5, atol=1e-5)
    return [n.op for n in after.nodes]


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    graph = random_graph(seed)
    _sunk(graph, sample_inputs(graph))


@for_each("name", ["conv", "depthwise", "max_pool", "average_pool"])
def test_after_choosing_layouts(name: str) -> None:
    _sunk(choose_layouts(KERNELS[name](5, 4, 6), ON_CPU))


def test_two_transposes_are_one_or_none() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 2, 3, 4))
    turned = g("transpose", g("transpose", x, perm=(1, 2, 0)), perm=(1, 2, 0))
    back = g("transpose", turned, perm=(1, 2, 0))
    assert _sunk(g.graph(g("neg", turned))) == ["neg", "transpose"]
    assert _sunk(g.graph(g("neg", back))) == ["neg"]


def test_arithmetic_comes_before_the_transpose() -> None:
    g = _Maker("f")
    x, y = g.input("x", tensor(F32, 2, 3, 4)), g.input("y", tensor(F32, 2, 3, 4))
    a, b = (g("transpose", v, perm=(2, 0, 1)) for v in (x, y))
    bias = g.constant(np.arange(6, dtype="f4").reshape(2, 3))
    total = g("relu", g("mul", g("add", a, b), bias))
    assert _sunk(g.graph(total)) == ["add", "mul", "relu", "transpose"]


def test_different_transposes_stay() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 3, 3, 3))
    total = g("add", g("transpose", x, perm=(1, 0, 2)), g("transpose", x, perm=(2, 1, 0)))
    assert _sunk(g.graph(total)) == ["transpose", "transpose", "add"]


@for_each("keepdims", [True, False])
@for_each("axes", [(0,), (1, -1), (-2,), (0, 1, 2)])
def test_reductions_follow_their_axes(axes: tuple[int, ...], keepdims: bool) -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 2, 3, 4))
    turned = g("transpose", x, perm=(2, 0, 1))
    ops = _sunk(g.graph(g("reduce_sum", turned, axes=axes, keepdims=keepdims)))
    assert ops[0] == "reduce_sum"


@for_each("axis", [0, 1, -1])
def test_concatenation_follows_its_axis(axis: int) -> None:
    g = _Maker("f")
    x, y = g.input("x", tensor(F32, 2, 3, 4)), g.input("y", tensor(F32, 2, 3, 4))
    parts = [g("transpose", v, perm=(2, 0, 1)) for v in (x, y)]
    assert _sunk(g.graph(g("concat", *parts, axis=axis))) == ["concat", "transpose"]


def test_moving_dimensions_of_one_is_a_reshape() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, 3, 1, 4))
    assert _sunk(g.graph(g("transpose", x, perm=(2, 1, 0, 3)))) == ["reshape"]
    assert _sunk(g.graph(g("transpose", x, perm=(0, 3, 2, 1)))) == ["transpose"]


def test_nothing_to_move_is_the_same_object() -> None:
    graph = KERNELS["dense"](2, 3, 4)
    assert rewrite_graph(graph, sink_transpose) is graph


def test_operands_whose_units_move_are_reshaped() -> None:
    g = _Maker("f")
    x, gate = g.input("x", tensor(F32, 2, 4, 5, 3)), g.input("gate", tensor(F32, 2, 3, 1, 1))
    scaled = g("mul", g("transpose", x, perm=(0, 3, 1, 2)), gate)
    assert _sunk(g.graph(g("transpose", scaled, perm=(0, 2, 3, 1)))) == ["reshape", "mul"]


def test_operands_that_would_have_to_be_moved_stay() -> None:
    g = _Maker("f")
    x, y = g.input("x", tensor(F32, 2, 4, 5, 3)), g.input("y", tensor(F32, 2, 3, 4, 5))
    graph = g.graph(g("mul", g("transpose", x, perm=(0, 3, 1, 2)), y))
    assert rewrite_graph(graph, sink_transpose) is graph


def test_what_transposes_sink_through() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 2, 3))
    g("relu", x)
    g("reduce_sum", x, axes=(0,))
    g("concat", x, x, axis=0)
    g("softmax", x, axis=-1)
    g("transpose", x, perm=(1, 0))
    assert [sinks_through(n) for n in g.nodes] == [True, True, True, False, False]


@for_each(("op", "mode"), [("resize", "linear"), ("resize_nearest", "nearest")])
def test_resizes_are_computed_before(op: str, mode: str) -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 2, 3, 5, 4))
    old, new = (2, 4, 3, 5), (2, 4, 6, 7)
    scales = tuple(zip(new, old, strict=True))
    last = g("transpose", x, perm=(0, 3, 1, 2))
    y = g(op, last, shape=new, scales=scales, mode=mode)
    assert _sunk(g.graph(g("transpose", y, perm=(0, 2, 3, 1)))) == [op]
