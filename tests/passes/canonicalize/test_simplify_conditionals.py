from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.ops.control.test_conditional import N, X, branch, conditional
from tests.passes.contexts import ON_CPU
from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.control.conditional import IfAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.passes.canonicalize.infer_types import bind_dims
from tilewright.passes.canonicalize.simplify_conditionals import simplify_conditionals


@for_each("truth", [True, False])
def test_a_constant_condition_leaves_one_branch(truth: bool) -> None:
    g = GraphBuilder("f")
    x, c = g.input("x", X), g.constant(np.array(truth))
    (y,) = g.add_control("if", [c, x], (branch("exp"), branch("neg")), IfAttrs())
    after = simplify_conditionals(g.graph(y), ON_CPU)
    assert [n.op for n in after.nodes] == ["exp" if truth else "neg"]
    assert simplify_conditionals(after, ON_CPU) is after


def test_sizes_that_are_given_decide() -> None:
    graph = conditional(branch("twice"), branch("neg"), N.eq(1)).graph("y")
    assert simplify_conditionals(graph, ON_CPU) is graph
    one, two = bind_dims(graph, {"N": 1}), bind_dims(graph, {"N": 2})
    assert [n.op for n in one.nodes] == ["concat"]
    assert [n.op for n in two.nodes] == ["neg"]
    assert one.types[one.outputs[0]] == tensor(F32, 2, 3)


def test_branches_are_typed_anew() -> None:
    graph = bind_dims(conditional(branch("twice"), branch("neg")).graph("y"), {"N": 4})
    (n,) = graph.nodes
    assert [str(r.types[r.outputs[0]]) for r in n.regions] == ["f32[8, 3]", "f32[4, 3]"]


def test_captures() -> None:
    """A constant moves into the branches, and what neither reads is no operand."""
    g = GraphBuilder("f")
    x = g.input("x", X)
    c = g.add("less", g.input("p", tensor(F32)), g.input("q", tensor(F32)))
    w = g.constant(np.full((1, 3), 3, np.float32), "w")
    regions = []
    for op in ("add", "mul"):
        b = GraphBuilder(op)
        inner = [b.input(v, g.type(v)) for v in (x, w, "p")]
        regions.append(b.graph(b.add(op, inner[0], inner[1])))
    (y,) = g.add_control("if", [c, x, w, "p"], regions, IfAttrs())
    graph = g.graph(y)
    after = simplify_conditionals(graph, ON_CPU)
    (n,) = (n for n in after.nodes if n.regions)
    assert n.inputs[1:] == (x,)
    assert [len(r.constants) for r in n.regions] == [1, 1]
    data = np.ones((2, 3), np.float32)
    for p in (0, 2):
        given = {"x": data, "p": np.float32(p), "q": np.float32(1)}
        expected = run_graph(graph, given)[y]
        np.testing.assert_array_equal(run_graph(after, given)[after.outputs[0]], expected)
