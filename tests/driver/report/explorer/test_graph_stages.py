from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tilewright.driver.options import make_options
from tilewright.driver.report.explorer.document import ExploredModel, explorer_document
from tilewright.driver.report.explorer.explore import explore
from tilewright.driver.report.explorer.graph_stages import GraphStages


def test_equal_nodes_are_stored_once(measured: ExploredModel) -> None:
    graphs = measured.build.log.graphs
    assert graphs is not None
    stages = GraphStages({})
    stages.add(graphs[0])
    first = len(stages.rows)
    stages.add(graphs[0])
    assert len(stages.rows) == first
    assert stages.graphs[0]["nodes"] == stages.graphs[1]["nodes"] == list(range(first))


def test_fusing_keeps_the_operators_under_their_names(measured: ExploredModel) -> None:
    document = explorer_document(measured)
    before, after = document["graphs"][-2:]
    assert document["passes"][-1]["name"] == "fuse"
    assert sorted(before["nodes"]) == sorted(after["nodes"])
    assert before["groups"] == []
    assert [g["step"] for g in after["groups"]] == list(range(len(document["steps"])))
    assert sum(len(g["nodes"]) for g in after["groups"]) <= len(after["nodes"])


def test_numbers_that_groups_spell_out_change_nothing() -> None:
    nodes = [helper.make_node("Mul", ["x", "c"], ["a"]), helper.make_node("Exp", ["a"], ["y"])]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8]) for name in "xy"]
    weights = [numpy_helper.from_array(np.array([2], np.float32), "c")]
    model = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], weights))
    document = explorer_document(explore("g", model, make_options("x86-64-v3")))
    before, after = document["graphs"][-2:]
    assert before["nodes"] == after["nodes"]


def test_rows_leave_constants_out_of_the_operands(measured: ExploredModel) -> None:
    document = explorer_document(measured)
    defined = {value for row in document["nodes"] for value in row[1]}
    inputs = set(document["graphs"][0]["inputs"])
    for number in document["graphs"][0]["nodes"]:
        op, _, operands, kind, _, source, weights = document["nodes"][number]
        assert set(operands) <= defined | inputs
        assert kind.startswith("f32[")
        assert source
        assert (op == "conv") <= bool(weights)


def test_kernels_are_found_whatever_an_output_is_called() -> None:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["a", "b"]),
        helper.make_node("Identity", ["a"], ["y"]),
    ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [n])
        for name, n in (("x", 8), ("y", 2))
    ]
    weights = [numpy_helper.from_array(np.array([2]), "k")]
    model = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:], weights))
    explored = explore("g", model, make_options("x86-64-v3"))
    document = explorer_document(explored)
    found = [group["step"] for group in document["graphs"][-1]["groups"]]
    assert found == list(range(len(document["steps"])))
