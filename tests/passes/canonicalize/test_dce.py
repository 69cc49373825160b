from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.core.dtypes import F32
from tilewright.ir.graph.parse import parse_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.canonicalize.dce import dce


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = random_graph(seed)
    after = dce(graph, ON_CPU)
    assert_same_results(graph, after)
    assert dce(after, ON_CPU) is after


def test_dead_nodes_and_constants_go():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2))
    g.input("unused", tensor(F32, 2))
    c, d = (g.constant(np.ones(2, np.float32)) for _ in range(2))
    dead = g.add("add", x, c)
    g.add("relu", dead)
    y = g.add("mul", x, d, name="y")
    after = dce(g.graph(y), ON_CPU)
    assert [n.op for n in after.nodes] == ["mul"]
    assert [k.name for k in after.constants] == [d]
    assert [v.name for v in after.inputs] == ["x", "unused"]


def test_a_node_with_one_used_output_stays():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 5))
    _, indices = g.add_many("topk", x, attrs=make_attrs("topk", {"k": 2}))
    graph = g.graph(indices)
    assert dce(graph, ON_CPU) is graph


def test_a_node_that_gives_a_size_its_value_stays():
    text = """
graph @f(n: i64[]) {
  %x: i64[], %rows: i64[_late_1] = loop(_, %n) {induction_var="_late_0", trip_count=3, carried=1,
      conditional=true, trip_count_dim="_late_1"}
    graph @body(a: i64[], more: bool[] = const false) {
      return %more, %a, %a
    }
  %y: f32[_late_1, 0] = full() {shape=[_late_1, 0], value=0, dtype=f32}
  return %y
}
"""
    graph = parse_graph(text, make_attrs)
    assert dce(graph, ON_CPU) is graph
