from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tilewright.bench.interleaved import EngineResult, Entry, HarnessSettings, measure

QUICK = HarnessSettings(rounds=2, seconds=0.01, idle_timeout=0)


def _entry(job: dict[str, Any], **changes: Any) -> Entry:
    keep = {**job, "output_names": tuple(job["output_names"])}
    return Entry(**{"label": "ours", "engine": "tilewright", "keeps": True, **keep, **changes})


def test_compiled_in_one_process_and_measured_in_another(job: dict[str, Any]) -> None:
    shown: list[str] = []
    (result,) = measure([_entry(job)], QUICK, shown.append)
    row = result.summary()
    assert row["engine"] == "ours"
    assert min(row["compile_s"], row["load_s"]) > 0
    assert row["min_ms"] <= row["median_ms"]
    assert row["runs"] >= 2
    assert row["error"] < 1e-5
    assert row["kernels"]
    assert row["run_mb"] > 0
    assert shown == ["load ours", "round 1 of 2", "round 2 of 2"]
    assert dict(np.load(job["outputs"])).keys() == {"probabilities"}


def test_one_fails_and_the_other_goes_on_but_once_if_it_is_slow(
    job: dict[str, Any], tmp_path: Path
) -> None:
    broken = _entry(job, label="broken", model=str(tmp_path / "none.onnx"), outputs=None)
    all_are_slow = HarnessSettings(rounds=4, seconds=0.0, idle_timeout=0, slow=0.0)
    bad, good = measure([broken, _entry(job, keeps=False)], all_are_slow)
    assert "onnx.unreadable" in bad.summary()["failure"]
    assert bad.summary().keys() == {"engine", "failure"}
    assert "min_ms" in good.summary()
    assert len(good.samples) == 1


def test_disturbed_samples_count_only_where_there_are_not_two_others() -> None:
    idle = {"ms": [2.0], "others": 0.0, "cpu_ms": 2.0, "run_mb": 1.0}
    busy = {"ms": [1.0], "others": 0.9, "cpu_ms": 1.0, "run_mb": 1.0}
    assert EngineResult("a", samples=[idle, busy]).summary()["min_ms"] == 1
    assert EngineResult("a", samples=[idle, busy, idle]).summary()["min_ms"] == 2
