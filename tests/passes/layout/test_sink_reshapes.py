from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32, I64
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.layout.sink_reshapes import _runs, sink_reshapes

N = Var("N")
RNG = np.random.default_rng(3)


class Builder(GraphBuilder):
    """A builder with short names for what the examples are made of."""

    def __call__(self, op: str, *inputs: str, **attrs: object) -> str:
        return self.add(op, *inputs, attrs=make_attrs(op, attrs))

    def weights(self, *shape: int) -> str:
        return self.constant(RNG.standard_normal(shape).astype(np.float32))

    def view(self, value: str, *shape: object) -> str:
        return self("reshape", value, shape=shape)


def _ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def _sunk(graph: Graph, rtol: float = 0.0) -> Graph:
    after = dce(sink_reshapes(graph, ON_CPU), ON_CPU)
    assert_same_results(graph, after, rtol)
    assert sink_reshapes(after, ON_CPU) is after
    return after


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = random_graph(seed)
    assert_same_results(graph, sink_reshapes(graph, ON_CPU))


def test_a_residual_meets_the_product_in_front_of_the_reshapes():
    g = Builder("f")
    x = g.input("x", tensor(F32, 1, N, 8))
    product = g("matmul", g.view(x, N, 8), g.weights(8, 8))
    linear = g.view(g("add", product, g.weights(8)), 1, N, 8)
    total = g("add", linear, x)
    after = _sunk(g.graph(g("relu", total), total), rtol=1e-6)
    assert _ops(after) == ["matmul", "add", "add", "relu"]


def test_indices_are_looked_up_in_the_shape_in_which_they_are_cut():
    g = Builder("f")
    indices = g.input("i", tensor(I64, 5, 3))
    column = g("slice", indices, starts=(0, 1), stops=(5, 2), steps=(1, 1))
    rows = g("gather", g.weights(7, 4), g.view(column, 5), axis=0)
    after = _sunk(g.graph(g.view(rows, 5, 1, 4)))
    assert _ops(after) == ["slice", "gather"]


def test_heads_are_scaled_before_they_are_split():
    g = Builder("f")
    x = g.input("x", tensor(F32, N, 4))
    heads = g.view(g("matmul", x, g.weights(4, 6)), N, 2, 3)
    moved = g("transpose", heads, perm=(1, 0, 2))
    scaled = g("mul", moved, g.constant(np.float32([[[2.0]], [[3.0]]])))
    after = _sunk(g.graph(scaled), rtol=1e-6)
    assert _ops(after) == ["matmul", "mul", "reshape", "transpose"]
    # One factor a head became one a column.
    assert [c.data.shape for c in after.constants] == [(4, 6), (1, 6)]


def test_transposes_join_across_a_reshape():
    g = Builder("f")
    x = g.input("x", tensor(F32, N, 5, 2, 3))
    heads = g("transpose", x, perm=(0, 2, 1, 3))
    flat = g("transpose", g.view(heads, N * 2, 5, 3), perm=(0, 2, 1))
    after = _sunk(g.graph(g("relu", g.view(flat, N, 2, 3, 5))))
    assert _ops(after) == ["relu", "transpose"]
    assert after.nodes[1].attrs == make_attrs("transpose", {"perm": (0, 2, 3, 1)})


def test_a_convolution_in_groups_meets_the_transpose_of_its_result() -> None:
    g = Builder("f")
    x = g.input("x", tensor(F32, 2, 5, 6, 3, 4))
    window = {"strides": (1,) * 3, "pads": (0,) * 6, "dilations": (1,) * 3}
    y = g("group_conv", x, g.weights(3, 7, 4, 3, 3), **window, layout="channels_last")
    joined = g.view(g("relu", y), 2, 3, 4, 21)
    after = _sunk(g.graph(g("transpose", joined, perm=(0, 3, 1, 2))))
    assert _ops(after) == ["group_conv", "relu", "transpose", "reshape"]
    assert after.nodes[2].attrs.perm == (0, 3, 4, 1, 2)


def test_a_transpose_between_reshapes_that_undo_each_other():
    g = Builder("f")
    x = g("relu", g.input("x", tensor(F32, N, 2, 5, 3)))
    turned = g("transpose", g.view(x, N * 2, 5, 3), perm=(0, 2, 1))
    after = _sunk(g.graph(g("relu", g.view(turned, N, 2, 3, 5)), x))
    assert _ops(after) == ["relu", "relu", "transpose"]
    assert after.nodes[-1].attrs == make_attrs("transpose", {"perm": (0, 1, 3, 2)})


def test_a_transpose_that_splits_runs_stays():
    g = Builder("f")
    x = g.input("x", tensor(F32, N, 6))
    heads = g("transpose", g.view(g("relu", x), N, 2, 3), perm=(1, 0, 2))
    graph = g.graph(heads)
    assert sink_reshapes(graph, ON_CPU) is graph


def test_reductions_of_whole_runs():
    g = Builder("f")
    x = g.input("x", tensor(F32, N, 4, 3, 1))
    y = g.view(x, N, 4, 3)
    outputs = [
        g("reduce_max", y, axes=(2,), keepdims=False),
        g("reduce_sum", y, axes=(-2,), keepdims=True),
        g("reduce_mean", g.view(x, N, 12), axes=(1,), keepdims=True),
    ]
    after = _sunk(g.graph(*outputs), rtol=1e-6)
    reduced = [n for n in after.nodes if n.op.startswith("reduce")]
    assert all(n.inputs == ("x",) for n in reduced)


def test_a_part_of_a_run_cannot_be_reduced_first():
    g = Builder("f")
    x = g.input("x", tensor(F32, N, 12))
    graph = g.graph(g("reduce_max", g.view(x, N, 4, 3), axes=(2,)))
    assert sink_reshapes(graph, ON_CPU) is graph


def test_what_others_read_too_is_left():
    g = Builder("f")
    x = g.input("x", tensor(F32, N, 6))
    y = g("exp", x)
    graph = g.graph(g("relu", g.view(y, N, 2, 3)), y)
    assert sink_reshapes(graph, ON_CPU) is graph


def test_an_operand_with_a_kernel_of_its_own_is_left():
    g = Builder("f")
    x, y = g.input("x", tensor(F32, N, 6)), g.input("y", tensor(F32, N, 2, 3))
    graph = g.graph(g("add", g.view(g("exp", x), N, 2, 3), g("tanh", y)))
    assert sink_reshapes(graph, ON_CPU) is graph
    late = g.graph(g("add", g.view(g("exp", x), N, 2, 3), y))
    assert _ops(_sunk(late)) == ["exp", "reshape", "add", "reshape"]


def test_two_kernels_in_different_shapes_stay():
    g = Builder("f")
    x, y = g.input("x", tensor(F32, 6, 4)), g.input("y", tensor(F32, 4, 6))
    graph = g.graph(g("add", g.view(g("exp", x), 24), g.view(g("tanh", y), 24)))
    assert sink_reshapes(graph, ON_CPU) is graph


def test_an_operand_that_broadcasts_within_a_run_is_left():
    g = Builder("f")
    x, y = g.input("x", tensor(F32, N, 6)), g.input("y", tensor(F32, 2, 1))
    graph = g.graph(g("add", g.view(g("exp", x), N, 2, 3), y))
    assert sink_reshapes(graph, ON_CPU) is graph


def test_what_reshapes_nothing_goes():
    g = Builder("f")
    x = g.input("x", tensor(F32, N, 6))
    after = _sunk(g.graph(g("relu", g.view(g("exp", x), N, 6))))
    assert _ops(after) == ["exp", "relu"]


def test_a_permutation_that_enters_a_run_in_its_middle_stays():
    g = Builder("f")
    x = g("transpose", g.input("x", tensor(F32, N, 6)), perm=(1, 0))
    graph = g.graph(g("transpose", g.view(x, 2, 3, N), perm=(1, 0, 2)))
    assert sink_reshapes(graph, ON_CPU) is graph


def test_units_move_for_free():
    g = Builder("f")
    x = g.input("x", tensor(F32, 1, 4, 4, 8))
    first = g("transpose", x, perm=(0, 3, 1, 2))
    gate = g("reduce_mean", first, axes=(2, 3))
    gate = g("sigmoid", g("add", gate, g.weights(8, 1, 1)))
    after = _sunk(g.graph(g("transpose", g("mul", first, gate), perm=(0, 2, 3, 1))), rtol=1e-6)
    assert _ops(after) == ["reduce_mean", "add", "sigmoid", "mul"]


@for_each(
    ("old", "new", "expected"),
    [
        ((1, 8, 6), (1, 8, 2, 3), [((1,), (1,)), ((8,), (8,)), ((6,), (2, 3))]),
        ((1, 2, 5), (2, 5), [((1,), ()), ((2,), (2,)), ((5,), (5,))]),
        ((2, 5), (1, 2, 5), [((), (1,)), ((2,), (2,)), ((5,), (5,))]),
        ((4, 3, 2), (4, 6), [((4,), (4,)), ((3, 2), (6,))]),
        ((4,), (4,), [((4,), (4,))]),
        ((), (1,), [((), (1,))]),
    ],
)
def test_runs(old, new, expected):
    a, b = tuple(map(const, old)), tuple(map(const, new))
    found = [(old[i], new[j]) for i, j in _runs(a, b)]
    assert found == expected
