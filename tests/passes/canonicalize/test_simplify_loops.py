"""Loops that carry less, and loops that are none."""

from __future__ import annotations

import numpy as np

from tests.differential.native import check_native
from tests.for_each import for_each
from tests.ops.control.test_loop import T, conditional, inputs, recurrent
from tests.passes.contexts import ON_CPU
from tilewright.arith.expr import Expr, const
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.infer_types import bind_dims
from tilewright.passes.canonicalize.simplify_loops import simplify_loops


def passing(count: Expr) -> Graph:
    """A loop that carries three values, of which it changes the second, and reads a constant."""
    b = GraphBuilder("body")
    a, h, unused, w, z = (b.input(name, tensor(F32, 3)) for name in "ahuwz")
    after = b.add("add", b.add("mul", h, w), a)
    body = b.graph(a, after, unused, after)
    g = GraphBuilder("f")
    g.input("t", tensor(F32, T))
    x, y, u, z = (g.input(name, tensor(F32, 3)) for name in "xyuz")
    w = g.constant(np.array([1, 2, 3], np.float32))
    attrs = LoopAttrs("i", count, 3)
    found = g.add_control("loop", ["", x, y, u, w, z], [body], attrs, ["a", "h", "v", "rows"])
    return g.graph(*found)


def arrays(steps: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(steps)
    values = {name: rng.normal(size=3).astype(np.float32) for name in "xyuz"}
    return {"t": np.zeros(steps, np.float32), **values}


def assert_same(before: Graph, after: Graph, given: dict[str, np.ndarray]) -> None:
    check_types(after)
    expected, found = run_graph(before, given), run_graph(after, given)
    for a, b in zip(expected.values(), found.values(), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)


def test_only_what_changes_is_carried() -> None:
    graph = passing(T)
    after = simplify_loops(graph, ON_CPU)
    (n,) = after.nodes
    (body,) = n.regions
    assert n.attrs.carried == 1
    assert n.inputs == ("", "y", "x")
    assert [c.data.tolist() for c in body.constants] == [[1, 2, 3]]
    assert after.outputs == ("x", "h", "u", "rows")
    assert simplify_loops(after, ON_CPU) is after
    for steps in (0, 1, 4):
        assert_same(graph, after, arrays(steps))
    check_native(graph, arrays(4))


@for_each("count", [0, 1])
def test_no_step_and_one(count: int) -> None:
    graph = passing(const(count))
    after = simplify_loops(graph, ON_CPU)
    assert all(n.op != "loop" for n in after.nodes)
    assert_same(graph, after, arrays(2))


def test_the_counter_of_a_single_step_is_zero() -> None:
    graph = recurrent(LoopAttrs("i", T, 1))
    once = bind_dims(graph, {"T": 1})
    after = simplify_loops(once, ON_CPU)
    assert all(n.op != "loop" for n in after.nodes)
    assert_same(once, after, inputs(1, 5))
    check_native(once, inputs(1, 5))


def test_a_loop_that_may_end_early_stays() -> None:
    graph = conditional(const(1))
    assert [n.op for n in simplify_loops(graph, ON_CPU).nodes] == ["loop", "neg"]
