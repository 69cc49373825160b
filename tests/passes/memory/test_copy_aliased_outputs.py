from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.registry import get_op
from tilewright.passes.memory.copy_aliased_outputs import copy_aliased_outputs


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = random_graph(seed)
    after = copy_aliased_outputs(graph, ON_CPU)
    assert_same_results(graph, after)
    assert copy_aliased_outputs(after, ON_CPU) is after
    roots = [_root(after, o) for o in after.outputs]
    assert len(set(roots)) == len(roots)
    assert all(r in after.producer for r in roots)


def _root(graph: Graph, name: str) -> str:
    while name in graph.producer and get_op(graph.producer[name].op).kind == "view":
        name = graph.producer[name].inputs[0]
    return name


def test_what_is_copied():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, Var("N"), 4))
    c = g.constant(np.ones(2, np.float32))
    y = g.add("relu", x, name="y")
    view = g.add("reshape", y, name="view", attrs=make_attrs("reshape", {"shape": (4, Var("N"))}))
    after = copy_aliased_outputs(g.graph(x, c, y, y, view), ON_CPU)
    assert [n.op for n in after.nodes[2:]] == ["identity"] * 4
    assert [n.inputs[0] for n in after.nodes[2:]] == [x, c, y, view]
    assert after.outputs[2] == y


def test_a_view_of_its_own_kernel_is_not_copied():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2, 4))
    y = g.add("relu", x)
    graph = g.graph(g.add("reshape", y, attrs=make_attrs("reshape", {"shape": (8,)})))
    assert copy_aliased_outputs(graph, ON_CPU) is graph


def test_a_view_of_rows_whose_number_is_checked_late_is_copied():
    body = GraphBuilder("body")
    x = body.input("x", tensor(F32, 4))
    going = body.constant(np.array(True))
    rows = LoopAttrs("i", const(9), 0, conditional=True, trip_count_dim="_late_0")
    g = GraphBuilder("f")
    given = g.input("x", tensor(F32, 4))
    region = body.graph(going, body.add("relu", x))
    (stack,) = g.add_control("loop", ["", given], [region], rows)
    flat = g.add("reshape", stack, attrs=make_attrs("reshape", {"shape": (Var("_late_0") * 4,)}))
    kept = g.graph(flat)
    assert copy_aliased_outputs(kept, ON_CPU) is kept
    two = g.add("reshape", stack, attrs=make_attrs("reshape", {"shape": (8,)}))
    after = copy_aliased_outputs(g.graph(two), ON_CPU)
    assert after.nodes[-1].op == "identity"
    assert after.tensor_type(stack).shape[0] is Var("_late_0")
