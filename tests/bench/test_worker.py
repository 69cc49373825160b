from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.bench.engines import ENGINES
from tilewright.bench.worker import main, memory_mb, serve, timed_runs


def _answers(job: dict[str, Any], *asked: str) -> list[dict[str, Any]]:
    answers = io.StringIO()
    serve(ENGINES["tilewright"], job, io.StringIO("\n".join(asked)), answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_it_answers_one_request_after_another(job: dict[str, Any]) -> None:
    loaded, first, second, kernels = _answers(job, "0.0", "0.001", "kernels")
    assert loaded["error"] < 1e-5
    assert loaded["load_s"] > 0
    assert loaded["load_peak_mb"] >= loaded["idle_mb"] > 0
    assert len(first["ms"]) == 1
    assert len(second["ms"]) >= 1
    assert first["cpu_ms"] > 0
    assert kernels["kernels"]
    assert np.load(job["outputs"])["probabilities"].shape == (2, 5)


def test_nothing_expected(job: dict[str, Any]) -> None:
    (loaded,) = _answers({**job, "expected": None, "outputs": None})
    assert loaded["error"] is None
    assert not Path(job["outputs"]).exists()


def test_which_engines_are_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["worker"])
    main(ENGINES)
    assert "tilewright" in capsys.readouterr().out.split()


def test_timed_runs() -> None:
    calls: list[int] = []
    assert len(timed_runs(lambda: calls.append(1), 0.0)) == 1
    assert len(timed_runs(lambda: calls.append(1), 0.01)) > 1


def test_memory() -> None:
    now = memory_mb("VmRSS")  # read before the most that there was, which includes it
    assert memory_mb("VmHWM") >= now > 1
    with pytest.raises(RuntimeError, match="VmNothing"):
        memory_mb("VmNothing")


def test_another_model_takes_the_place(job: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps({**job, "expected": None}))
    first, second, timed = _answers(job, f"load {tmp_path / 'job.json'}", "0.0")
    assert first["error"] < 1e-5
    assert second["error"] is None
    assert timed["ms"]
