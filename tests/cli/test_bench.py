from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tests.cli.invoke import fail, succeed, succeed_json
from tilewright.cli.bench import Result, difference, summarize
from tilewright.cli.bench_engine import Loaded

QUICK = ("--rounds", "2", "--seconds", "0.01", "--threads", "1")


def test_alone(conv_file: Path) -> None:
    text = succeed("bench", conv_file, *QUICK)
    assert "tilewright" in text
    assert "median ms" in text


def test_beside_onnxruntime(mlp_file: Path) -> None:
    pytest.importorskip("onnxruntime")
    report = succeed_json("bench", mlp_file, "--against", "onnxruntime", "--dim", "N=2", *QUICK)
    ours, theirs = report["engines"]
    assert (ours["engine"], theirs["engine"]) == ("tilewright", "onnxruntime")
    assert ours["difference"] < 1e-5
    assert theirs["min_ratio"] == theirs["median_ratio"] == 1
    assert ours["min_ratio"] == pytest.approx(ours["min_ms"] / theirs["min_ms"])
    assert ours["runs"] >= 2


def test_beside_openvino(mlp_file: Path, conv_file: Path) -> None:
    pytest.importorskip("openvino")
    for path, dims in ((mlp_file, ("--dim", "N=2")), (conv_file, ())):
        report = succeed_json("bench", path, "--against", "onnxruntime,openvino", *dims, *QUICK)
        assert [row["engine"] for row in report["engines"]][1:] == ["onnxruntime", "openvino"]
        assert max(row["difference"] for row in report["engines"]) < 1e-5


@pytest.mark.parametrize("name", ["torch", "inductor"])
def test_engines_that_read_no_onnx(mlp_file: Path, name: str) -> None:
    message = fail("bench", mlp_file, "--against", name, code="bench.refused")
    assert "does not read ONNX" in message


def test_engines_that_are_not_there(mlp_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = fail("bench", mlp_file, "--against", "tflite", code="bench.engine")
    assert "onnxruntime, openvino" in message
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    message = fail("bench", mlp_file, "--against", "onnxruntime", code="bench.missing")
    assert "pip install" in message


def test_what_cannot_be_measured(mlp_file: Path) -> None:
    fail("bench", mlp_file, code="cli.dim")
    fail("bench", "no.onnx", code="onnx.unreadable")
    succeed("compile", mlp_file)
    fail("bench", "mlp.tw", "--against", "onnxruntime", code="bench.saved")


def test_summary() -> None:
    x = {"y": np.ones(2, np.float32)}
    rows = summarize([Result("a", Loaded(1, x), [4, 2, 6]), Result("b", Loaded(1, x), [1, 2, 3])])
    assert [row["min_ratio"] for row in rows] == [2, 1]
    assert [row["median_ratio"] for row in rows] == [2, 1]


def test_difference() -> None:
    a = {"y": np.array([1.0, np.inf, -4.0])}
    assert difference(a, a) == 0
    assert difference({"y": np.array([1.5, np.inf, -4.0])}, a) == 0.125
    assert difference({"y": np.array([1.0, 1.0, -4.0])}, a) == float("inf")
    assert difference({"y": np.array([1.0])}, a) == float("inf")
    assert difference({"y": np.empty(0)}, {"y": np.empty(0)}) == 0
