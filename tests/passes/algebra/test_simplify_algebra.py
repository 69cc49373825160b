from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var
from tilewright.core.config import override
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.algebra.simplify_algebra import simplify_algebra
from tilewright.passes.canonicalize.dce import dce

N = Var("N")


def _simple(graph: Graph) -> list[str]:
    after = dce(simplify_algebra(graph, ON_CPU), ON_CPU)
    assert_same_results(graph, after, rtol=1e-5)
    assert simplify_algebra(after, ON_CPU) is after
    return [n.op for n in after.nodes]


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = random_graph(seed)
    assert_same_results(graph, simplify_algebra(graph, ON_CPU), rtol=1e-6)


def _number(g: GraphBuilder, value: float) -> str:
    return g.constant(np.float32(value))


def test_constants_come_together_over_a_long_chain():
    g = GraphBuilder("f")
    y = g.input("x", tensor(F32, N, 4))
    for i in range(2, 8):
        y = g.add("mul", y, _number(g, i))
    assert _simple(g.graph(y)) == ["mul"]


def test_a_whole_layer_norm_with_powers():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, N, 4))
    rows = make_attrs("reduce_mean", {"axes": (-1,)})
    d = g.add("sub", x, g.add("reduce_mean", x, attrs=rows))
    variance = g.add("reduce_mean", g.add("pow", d, _number(g, 2.0)), attrs=rows)
    root = g.add("pow", g.add("add", variance, _number(g, 1e-5)), _number(g, 0.5))
    scale, bias = (g.constant(np.arange(4, dtype=np.float32) + i) for i in (1, 2))
    y = g.add("add", g.add("mul", scale, g.add("div", d, root)), bias)
    assert _simple(g.graph(y)) == ["layer_norm"]


def test_reductions_without_their_axes_are_recognised():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, N, 4))
    attrs = make_attrs("reduce_sum", {"axes": (1,), "keepdims": False})
    column = make_attrs("reshape", {"shape": (N, 1)})
    peak = g.add("reshape", g.add("reduce_max", x, attrs=attrs), attrs=column)
    e = g.add("exp", g.add("sub", x, peak))
    total = g.add("reshape", g.add("reduce_sum", e, attrs=attrs), attrs=column)
    assert _simple(g.graph(g.add("div", e, total))) == ["softmax"]


def test_a_result_that_would_broadcast_is_left():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, N, 4))
    graph = g.graph(g.add("mul", x, g.constant(np.ones((3, 1, 1), np.float32))))
    assert simplify_algebra(graph, ON_CPU) is graph


def test_x_plus_zero_is_not_x():
    g = GraphBuilder("f")
    graph = g.graph(g.add("add", g.input("x", tensor(F32, N)), _number(g, 0.0)))
    assert simplify_algebra(graph, ON_CPU) is graph


def test_factors_that_overflow_or_vanish_together_stay_apart():
    for first, second in ((1e30, 1e30), (1e-30, 1e-30), (np.inf, 0.5)):
        g = GraphBuilder("f")
        x = g.input("x", tensor(F32, N))
        graph = g.graph(g.add("mul", g.add("mul", x, _number(g, first)), _number(g, second)))
        assert simplify_algebra(graph, ON_CPU) is graph


def test_rules_are_traced(capsys):
    g = GraphBuilder("f")
    graph = g.graph(g.add("mul", g.input("x", tensor(F32, N)), _number(g, 1.0), name="y"))
    with override(trace_rules=True):
        simplify_algebra(graph, ON_CPU)
    assert capsys.readouterr().err == "mul-one: mul y  -->  x\n"
