from __future__ import annotations

import json

import pytest

from tests.driver.bisect.deep_model import deep_model
from tilewright.driver.bisect.report import BisectReport, Finding, group_text, model_nodes
from tilewright.driver.compile_graph import optimized_graph
from tilewright.driver.options import make_options


def test_text_and_data_say_the_same() -> None:
    finding = Finding("pass", "fold", "y", 0.5, "add", ("Add_1",), {"rule": "x + 0"})
    report = BisectReport({"y": 0.5}, 1e-3, finding, 3, ("a note",))
    for part in ("pass fold", "add y", "Add_1", "0.5", "x + 0", "a note", "3 compilations"):
        assert part in report.text()
    data = json.loads(json.dumps(report.data()))
    assert data["finding"]["model_nodes"] == ["Add_1"]
    assert data["compilations"] == 3
    assert BisectReport({}, 1e-3, None, 1).data()["finding"] is None


def test_kinds_are_known() -> None:
    with pytest.raises(AssertionError):
        Finding("guess", "", "", 1.0)


def test_groups_are_opened() -> None:
    graph = optimized_graph(deep_model(1), make_options())
    assert group_text(graph.nodes[0]) == "matmul+add+swish+tanh"
    assert model_nodes(graph.nodes) == ("matmul_0", "add_0", "mul_0", "tanh_0", "softmax")
