from __future__ import annotations

import numpy as np

from tests.differential.native import check_native
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32, F64
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.canonicalize.eliminate_noop import NOOPS, REDUCTIONS, eliminate_noop

N = Var("N")


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = random_graph(seed)
    after = eliminate_noop(graph, ON_CPU)
    assert_same_results(graph, after)
    assert "identity" not in {n.op for n in after.nodes}
    assert eliminate_noop(after, ON_CPU) is after


def _single(op: str, **values: object) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, N, 1, 4))
    return g.graph(g.add(op, x, attrs=make_attrs(op, values)))


NOTHING = [
    ("cast", {"to": F32}),
    ("expand", {"shape": (N, 1, 4)}),
    ("expand", {"shape": (N * 2 - N, 1, 4)}),
    ("identity", {}),
    ("pad", {"before": (0, 0, 0), "after": (0, 0, 0)}),
    ("reshape", {"shape": (N, 1, 4)}),
    ("reverse", {"axes": (1,)}),
    ("slice", {"starts": (0, 0, 0), "stops": (N, 1, 4), "steps": (1, 1, 1)}),
    ("tile", {"repeats": (1, 1, 1)}),
    ("transpose", {"perm": (0, 1, 2)}),
]
SOMETHING = [
    ("cast", {"to": F64}),
    ("expand", {"shape": (N, 3, 4)}),
    ("pad", {"before": (0, 0, 0), "after": (0, 0, 1)}),
    ("reshape", {"shape": (N, 4, 1)}),
    ("reverse", {"axes": (1, 2)}),
    ("slice", {"starts": (0, 0, 1), "stops": (N, 1, 4), "steps": (1, 1, 1)}),
    ("slice", {"starts": (0, 0, 0), "stops": (N, 1, 4), "steps": (1, 1, 2)}),
    ("tile", {"repeats": (1, 1, 2)}),
    ("transpose", {"perm": (0, 2, 1)}),
]


@for_each(("op", "values"), NOTHING)
def test_what_does_nothing_goes(op, values):
    after = eliminate_noop(_single(op, **values), ON_CPU)
    assert after.outputs == ("x",)
    assert not after.nodes


@for_each(("op", "values"), SOMETHING)
def test_what_does_something_stays(op, values):
    graph = _single(op, **values)
    assert eliminate_noop(graph, ON_CPU) is graph


def test_every_row_is_tried():
    assert {op for op, _ in NOTHING} == set(NOOPS)


@for_each("op", sorted(REDUCTIONS))
@for_each(("keepdims", "ops"), [(True, []), (False, ["reshape"])])
def test_what_reduces_one_element_is_that_element(op, keepdims, ops):
    graph = _single(op, axes=(-2,), keepdims=keepdims)
    after = eliminate_noop(graph, ON_CPU)
    assert [n.op for n in after.nodes] == ops
    assert after.tensor_type(after.outputs[0]) == graph.tensor_type(graph.outputs[0])
    more = _single(op, axes=(1, 2), keepdims=keepdims)
    assert eliminate_noop(more, ON_CPU) is more


def test_concat_drops_operands_without_elements():
    g = GraphBuilder("f")
    x, y = g.input("x", tensor(F32, 2, 4)), g.input("y", tensor(F32, 2, 0))
    attrs = make_attrs("concat", {"axis": 1})
    one = g.add("concat", x, y, attrs=attrs)
    two = g.add("concat", x, y, x, attrs=attrs)
    graph = g.graph(one, two, g.add("concat", x, attrs=attrs))
    after = eliminate_noop(graph, ON_CPU)
    assert [n.inputs for n in after.nodes] == [("x", "x")]
    assert after.outputs == ("x", two, "x")
    assert eliminate_noop(after, ON_CPU) is after


def test_empty_results_become_constants():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 3, 0))
    y = g.add("matmul", x, g.input("w", tensor(F32, 0, 5)), name="y")
    z = g.add("concat", x, g.add("exp", x), attrs=make_attrs("concat", {"axis": 1}), name="z")
    graph = g.graph(y, z)
    after = dce(eliminate_noop(graph, ON_CPU), ON_CPU)
    assert [n.op for n in after.nodes] == ["matmul"]  # a sum of nothing is zero, not nothing
    assert after.constant_by_name["z"].data.shape == (3, 0)


def test_empty_results_of_symbolic_sizes_are_filled_with_nothing():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, N, const(0), Var("M")))
    graph = g.graph(g.add("reduce_sum", x, attrs=make_attrs("reduce_sum", {"axes": (2,)})))
    after = eliminate_noop(graph, ON_CPU)
    assert [n.op for n in after.nodes] == ["full"]
    assert after.types[after.outputs[0]] == graph.types[graph.outputs[0]]
    assert eliminate_noop(after, ON_CPU) is after
    check_native(after, {"x": np.ones((2, 0, 5), np.float32)})
