from __future__ import annotations

from tests.frontends.onnx.segments.segmented_models import AXES, GROWING, TEXTS
from tilewright.frontends.onnx.segments.operator_counts import operator_counts


def test_operators_of_nested_graphs_count() -> None:
    counts = operator_counts(GROWING.graph.node)
    assert counts.total == 8
    assert counts.host["SequenceInsert"] == 1
    assert str(counts).startswith("8 operators, ")


def test_compiled_operators() -> None:
    assert operator_counts(AXES.graph.node).data() == {"operators": 2, "host_operators": {}}
    assert str(operator_counts(AXES.graph.node)) == "2 operators, 0 on the host"
    assert operator_counts(TEXTS.graph.node).host == {"StringConcat": 1}
