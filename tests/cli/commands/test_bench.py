from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.invoke import fail, succeed, succeed_json
from tilewright.bench.engines import ENGINES, Engine
from tilewright.bench.interleaved import EngineResult, Entry
from tilewright.cli.commands.bench import engine_names, summarize
from tilewright.core.errors import ExecutionError
from tilewright.tune.records import Records, TunedSizes

QUICK = ("--rounds", "2", "--seconds", "0.01", "--threads", "1", "--idle-timeout", "0")


def test_beside_onnxruntime(mlp_file: Path) -> None:
    pytest.importorskip("onnxruntime")
    report = succeed_json("bench", mlp_file, "--against", "onnxruntime", "--dim", "N=2", *QUICK)
    ours, theirs = report["engines"]
    assert (ours["engine"], theirs["engine"]) == ("tilewright", "onnxruntime")
    assert ours["difference"] < 1e-5
    assert theirs["difference"] == 0
    assert ours["ratio"] == 1
    assert theirs["ratio"] == pytest.approx(theirs["min_ms"] / ours["min_ms"])
    assert min(ours["compile_s"], ours["load_s"]) > 0
    assert ours["run_mb"] > 0


def test_beside_openvino(mlp_file: Path) -> None:
    pytest.importorskip("openvino")
    names = "onnxruntime,openvino"
    report = succeed_json("bench", mlp_file, "--against", names, "--dim", "N=2", *QUICK)
    assert [row["engine"] for row in report["engines"]][1:] == names.split(",")
    assert max(row["difference"] for row in report["engines"]) < 1e-5


def test_the_sizes_that_were_tuned_are_measured(mlp_file: Path) -> None:
    with Records(Path("records.db")) as records:
        records.add_session(TunedSizes("mlp.onnx", {}, {"N": 3}))
    text = succeed("bench", mlp_file, "--tuned", "records.db", *QUICK)
    assert "N = 3 as tuned" in text
    assert "tilewright tuned" in text
    with Records(Path("empty.db")):
        pass
    fail("bench", mlp_file, "--tuned", "empty.db", *QUICK, code="cli.dim")


def test_which_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine_names("") == ["tilewright"]
    assert engine_names(" iree ,, tilewright") == ["tilewright", "iree"]
    monkeypatch.setattr(Engine, "installed", True)
    assert engine_names("all") == ["tilewright", "onnxruntime", "openvino"]


@pytest.mark.parametrize("name", ["torch", "inductor", "jax"])
def test_engines_that_read_no_onnx(mlp_file: Path, name: str) -> None:
    message = fail("bench", mlp_file, "--against", name, code="bench.refused")
    assert "does not read ONNX" in message


def test_engines_that_are_not_there(mlp_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = fail("bench", mlp_file, "--against", "tflite", code="bench.engine")
    assert "onnxruntime, openvino" in message
    absent = Engine("no_such_package", ENGINES["tilewright"].load, "")
    monkeypatch.setitem(ENGINES, "onnxruntime", absent)
    message = fail("bench", mlp_file, "--against", "onnxruntime", code="bench.missing")
    assert "pip install" in message


def test_what_cannot_be_measured(mlp_file: Path) -> None:
    fail("bench", mlp_file, code="cli.dim")
    fail("bench", "no.onnx", code="onnx.file")


def test_alone(mlp_file: Path) -> None:
    succeed("compile", mlp_file)
    fail("bench", "mlp.tw", "--against", "onnxruntime", code="bench.saved")
    text = succeed("bench", "mlp.tw", "--dim", "N=2", *QUICK)
    assert "tilewright" in text
    assert "median ms" in text
    assert "best other" not in text


def test_without_a_pass(mlp_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Entry] = []

    def measure(entries: list[Entry], *_: object) -> list[EngineResult]:
        measured.extend(entries)
        return [EngineResult(entry.label, failure="not run") for entry in entries]

    monkeypatch.setattr("tilewright.bench.interleaved.measure", measure)
    monkeypatch.setitem(ENGINES, "other", Engine("json", ENGINES["tilewright"].load, ""))
    against = ("--against", "tilewright-bf16,other", "--dim", "N=2")
    fail("bench", mlp_file, "--disable-pass", "cse", *against, code="bench.failed")
    assert [one.disable_passes for one in measured] == [("cse",), ("cse",), ()]


def test_passes_that_cannot_be_disabled(mlp_file: Path) -> None:
    fail("bench", mlp_file, "--disable-pass", "cheese", code="pass.unknown")
    fail("bench", mlp_file, "--disable-pass", "fuse", code="pass.required")
    succeed("compile", mlp_file)
    fail("bench", "mlp.tw", "--disable-pass", "cse", code="pass.saved")


def test_an_engine_that_fails_is_reported(mlp_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "iree", Engine("json", ENGINES["tilewright"].load, ""))
    text = succeed("bench", mlp_file, "--against", "iree", "--dim", "N=2", *QUICK)
    assert "iree failed: exit status 1" in text


def test_ours_must_not_fail() -> None:
    entry = Entry("tilewright", "tilewright", "m", "i", 1)
    with pytest.raises(ExecutionError, match="out of luck"):
        summarize([entry], [EngineResult("tilewright", failure="out of luck")])
