from __future__ import annotations

from tilewright.driver.report.explorer.document import ExploredModel, explorer_document
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
