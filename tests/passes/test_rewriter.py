from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.core.errors import Loc
from tilewright.ir.graph.nodes import Node
from tilewright.ir.graph.text import print_graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.rewriter import Rewriter, rewrite_graph, rewrite_until_stable


def _double_negation(g: Rewriter, n: Node) -> str | None:
    producer = g.producer(n.inputs[0]) if n.op == "neg" else None
    return producer.inputs[0] if producer is not None and producer.op == "neg" else None


def _sub_as_sum(g: Rewriter, n: Node) -> str | None:
    return g.add("add", n.inputs[0], g.add("neg", n.inputs[1])) if n.op == "sub" else None


@for_each("seed", SEEDS)
@for_each("rule", [_double_negation, _sub_as_sum])
def test_random_graphs_keep_their_meaning(seed, rule):
    graph = random_graph(seed)
    after = rewrite_graph(graph, rule)
    verify_graph(after)
    assert_same_results(graph, after)


def test_nothing_replaced_gives_the_same_object():
    graph = random_graph(0)
    assert rewrite_graph(graph, lambda g, n: None) is graph


def test_names_and_locations_follow_the_node():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, Var("N")))
    one = g.constant(np.ones(1, np.float32), "one")
    y = g.add("sub", x, one, name="y", loc=Loc("m.onnx", "Sub_0"))
    z = g.add("relu", y, name="y.v")
    graph = rewrite_graph(g.graph(y, z), _sub_as_sum)
    assert print_graph(graph) == (
        "graph @f(x: f32[N], one: f32[1] = const [1.0]) {\n"
        "  %y.v_1: f32[1] = neg(%one)\n"
        "  %y: f32[N] = add(%x, %y.v_1)\n"
        "  %y.v: f32[N] = relu(%y)\n"
        "  return %y, %y.v\n"
        "}\n"
    )
    assert {n.loc.node for n in graph.nodes[:2]} == {"Sub_0"}


def test_a_rule_sees_the_new_graph():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2))
    y = x
    for _ in range(5):
        y = g.add("neg", y)
    seen: list[int] = []

    def rule(g: Rewriter, n: Node) -> str | None:
        seen.append(g.use_count(n.inputs[0]))
        return _double_negation(g, n)

    once = rewrite_graph(g.graph(y), rule)
    assert once.producer[once.outputs[0]].inputs == ("x",)
    # The second and fourth node are replaced by the input, which then has their readers too.
    assert seen == [1, 1, 2, 1, 3]
    assert rewrite_until_stable(once, _double_negation) is once


def test_types_follow_changed_operands():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, Var("N"), 1))
    y = g.add("relu", g.add("identity", x))
    graph = rewrite_graph(g.graph(y), lambda g, n: n.inputs[0] if n.op == "identity" else None)
    assert graph.types[graph.outputs[0]] == tensor(F32, Var("N"), 1)


def test_a_rule_may_not_change_what_a_value_is():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2))
    y = g.add("is_nan", x)
    with pytest.raises(AssertionError, match=r"f32\[2\]"):
        rewrite_graph(g.graph(y), lambda g, n: n.inputs[0])
