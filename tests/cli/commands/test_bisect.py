from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cli.invoke import fail, invoke, succeed, succeed_json
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.passes import fuse


def test_a_right_model(mlp_file: Path) -> None:
    text = succeed("bisect", mlp_file, "--dim", "N=3")
    assert "output probabilities: differs by" in text
    assert "nothing changes a result" in text
    np.save("x.npy", np.ones((2, 16), np.float32))
    report = succeed_json("bisect", mlp_file, "-i", "x=x.npy", "--tolerance", 0.01)
    assert report["finding"] is None
    assert report["tolerance"] == 0.01
    assert report["compilations"] == 1


@pytest.fixture
def _wrong_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    right = fuse._canonical

    def wrong(nodes: list[Node], *rest: object) -> Graph:
        group = right(nodes, *rest)  # type: ignore[arg-type]
        subtracts = tuple(replace(n, op="sub") if n.op == "add" else n for n in group.nodes)
        return replace(group, nodes=subtracts)

    monkeypatch.setattr(fuse, "_canonical", wrong)


@pytest.mark.usefixtures("_wrong_fusion")
def test_a_finding_is_told_by_the_exit_status_too(mlp_file: Path) -> None:
    result = invoke("bisect", mlp_file, "--dim", "N=3")
    assert result.exit_code == 1
    assert result.stdout.split("\n\n")[1].startswith("fusion fuse: ")
    assert result.stderr == ""
    result = invoke("bisect", mlp_file, "--dim", "N=3", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["finding"]["model_nodes"] == ["gemm_0", "relu_1"]


def test_what_cannot_be_bisected(mlp_file: Path) -> None:
    fail("bisect", mlp_file, code="cli.dim")
    succeed("compile", mlp_file)
    fail("bisect", "mlp.tw", code="bisect.saved")
