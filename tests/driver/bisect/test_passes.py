from __future__ import annotations

import numpy as np

from tests.driver.bisect.deep_model import deep_input, deep_model
from tests.driver.bisect.test_reference_values import never
from tilewright.driver.bisect.passes import changes, find_pass
from tilewright.driver.bisect.reference_values import ReferenceValues
from tilewright.driver.bisect.tolerance import Tolerance
from tilewright.driver.pipeline import CPU
from tilewright.driver.sources import import_graph
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.passes.context import Pass, PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.host import host


def drop_tanh(graph: Graph, context: PassContext) -> Graph:
    """Wrong: a value takes the place of its tanh."""

    def rule(g: Rewriter, n: Node) -> str | None:
        return n.inputs[0] if n.name == "tanh_1" else None

    return rewrite_graph(graph, rule)


def to_infinity(graph: Graph, context: PassContext) -> Graph:
    """Wrong: divides by zero."""

    def rule(g: Rewriter, n: Node) -> str | None:
        if n.name != "tanh_1":
            return None
        return g.add("div", n.inputs[0], g.constant(np.float32(0), "zero"))

    return rewrite_graph(graph, rule)


def find(*passes: Pass) -> tuple[str, str, dict[str, str]] | None:
    graph = import_graph(deep_model(3))
    reference = ReferenceValues(deep_input(), never)
    made = changes(graph, passes, PassContext(host()))
    finding = find_pass(reference, reference.outputs(graph), made, Tolerance(1e-3))
    return None if finding is None else (finding.name, finding.node, finding.details)


def test_the_pipeline_is_right() -> None:
    assert find(*CPU) is None


def test_a_value_that_goes_is_followed_to_what_stands_for_it() -> None:
    found = find(*CPU[:5], drop_tanh, *CPU[5:])
    assert found is not None
    assert found[:2] == ("drop_tanh", "tanh_1")
    assert found[2]["pass"] == "number 6 of the pipeline"
    assert found[2]["became"] == "mul(%add_1, %sigmoid_1)"


def test_where_infinities_appear_first() -> None:
    found = find(*CPU[:2], to_infinity)
    assert found is not None
    assert found[1] == "tanh_1"
    assert "first appears in tanh_1" in found[2]["symptom"]
