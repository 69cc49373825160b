from __future__ import annotations

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.registry import get_op
from tilewright.passes.canonicalize.decompose import decompose
from tilewright.passes.fuse import fuse


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = random_graph(seed)
    after = decompose(graph, ON_CPU)
    assert_same_results(graph, after, rtol=1e-5)
    assert not [n.op for n in after.nodes if get_op(n.op).decompose]
    assert decompose(after, ON_CPU) is after


def test_what_a_decomposition_uses_is_decomposed_too():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, Var("N"), 4, 2, 2))
    scale, bias = g.input("s", tensor(F32, 4)), g.input("b", tensor(F32, 4))
    y = g.add("instance_norm", x, scale, bias, name="y")
    z = g.add("space_to_depth", y, attrs=make_attrs("space_to_depth", {"block": 2}), name="z")
    graph = g.graph(z)
    after = decompose(graph, ON_CPU)
    assert_same_results(graph, after, rtol=1e-5)
    assert not [n.op for n in after.nodes if get_op(n.op).decompose]
    assert after.outputs == ("z",)
    assert "y" in after.types


def test_groups_are_left_alone():
    g = GraphBuilder("f")
    graph = fuse(g.graph(g.add("exp", g.input("x", tensor(F32, 2)))), ON_CPU)
    assert decompose(graph, ON_CPU) is graph
