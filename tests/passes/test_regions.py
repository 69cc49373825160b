from __future__ import annotations

import numpy as np
import pytest

from tests.ops.control.test_conditional import X, branch, conditional
from tests.passes.contexts import ON_CPU
from tilewright.ir.graph.nodes import Graph
from tilewright.ops.control.conditional import IfAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.passes import manager
from tilewright.passes.context import PassContext
from tilewright.passes.manager import apply_pass
from tilewright.passes.regions import inline_region, map_regions


def test_the_same_object_where_nothing_changes() -> None:
    graph = conditional(branch("exp"), branch("neg")).graph("y")
    assert map_regions(graph, lambda g: g) is graph
    assert map_regions(branch("exp"), lambda g: branch()) is not None


def test_passes_see_branches_before_the_graph_around_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = conditional(branch("exp"), branch("neg")).graph("y")
    seen = []

    def note(graph: Graph, context: PassContext) -> Graph:
        seen.append(graph.name)
        return graph

    assert apply_pass(note, inner, ON_CPU) is inner
    assert seen == ["branch", "branch", "f"]
    seen.clear()
    monkeypatch.setattr(manager, "RECURSES", (note,))
    apply_pass(note, inner, ON_CPU)
    assert seen == ["f"]


def test_inlining_takes_constants_checks_and_nested_branches_along() -> None:
    g = GraphBuilder("inner")
    x = g.input("x", X)
    c = g.constant(np.array(True))
    g.add_check(X.shape[0] < 9, "few rows")
    w = g.constant(np.full((1, 3), 2, np.float32))
    m = g.add("mul", x, w)
    (y,) = g.add_control("if", [c, m], (branch("exp"), branch("neg")), IfAttrs())
    region = g.graph(y)
    outer = GraphBuilder("outer")
    a = outer.input("a", X)
    (result,) = inline_region(outer, region, [a])
    graph = outer.graph(result)
    assert [check.message for check in graph.checks] == ["few rows"]
    data = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(run_graph(graph, {"a": data})[result], np.exp(2 * data))
