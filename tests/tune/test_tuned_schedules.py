from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tune.test_workload import _text
from tilewright.target.registry import CPUS
from tilewright.tune.records import Record, Records
from tilewright.tune.target_key import target_text
from tilewright.tune.tuned_schedules import (
    NO_DIFFERENCE,
    SLOWER,
    TunedSchedules,
    read_tuned_schedules,
)
from tilewright.tune.workload import workload_hash

V3, V4 = CPUS["x86-64-v3"], CPUS["x86-64-v4"]


def _compared(
    trace: str, seconds: float, at: float = 1.0, failure: str = "", **changed: object
) -> Record:
    record = Record("w", "cpu", trace, (seconds,), failure, at, ())
    return replace(record, **{"baseline": "built in", "baseline_times": (1.0,), **changed})


def _best(*records: Record) -> str | None:
    found = TunedSchedules(records).of("w")
    return found[0].trace if found else None


def test_the_best_gain_wins_whatever_the_order() -> None:
    slow = _compared("c", 0.4, baseline_times=(0.5,))  # fast in seconds, but so was the baseline
    records = [_compared("a", 0.9), _compared("b", 0.5), slow]
    assert _best(*records) == _best(*reversed(records)) == "b"
    assert TunedSchedules(records).of("w")[0].gain == pytest.approx(2.0)


def test_a_trace_that_did_not_win_is_none() -> None:
    assert _best(_compared("a", 0.5, failure=NO_DIFFERENCE)) is None
    assert _best(_compared("a", 0.5, failure=SLOWER)) is None
    assert _best() is None


def test_the_newest_comparison_counts() -> None:
    old, new = _compared("a", 0.5, at=1.0), _compared("a", 1.1, at=2.0, failure=SLOWER)
    assert _best(old, new) == _best(new, old) is None
    assert _best(new, replace(old, measured_at=3.0)) == "a"


def test_slower_under_any_conditions_is_not_good() -> None:
    small, large = (("N", "1"),), (("N", "64"),)
    won = _compared("a", 0.5, conditions=small)
    assert _best(won, _compared("a", 1.0, conditions=large, failure=NO_DIFFERENCE)) == "a"
    assert _best(won, _compared("a", 1.2, conditions=large, failure=f"{SLOWER}: in b")) is None


def test_baselines_are_told_apart() -> None:
    found = TunedSchedules([_compared("a", 0.5), _compared("b", 0.9, baseline="older")]).of("w")
    assert [(v.trace, v.baseline) for v in found] == [("a", "built in"), ("b", "older")]


def test_identity_changes_with_the_verdicts_only() -> None:
    records = [_compared("a", 0.5), _compared("b", 0.9)]
    same = [*reversed(records), _compared("c", 2.0, failure=SLOWER)]
    assert TunedSchedules(records).identity == TunedSchedules(same).identity
    assert TunedSchedules(records).identity != TunedSchedules(records[1:]).identity


def test_files_give_the_verdicts_of_their_target(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    near, far = _text(8), _text(512)
    with Records(path) as records:
        for text, trace, target in ((near, "near", V3), (far, "far", V3), (near, "other", V4)):
            key = {"workload": workload_hash(text), "target": target_text(target)}
            records.add([_compared(trace, 0.5, **key)], {workload_hash(text): text})
    assert [v.trace for v in read_tuned_schedules(path, V3).of(workload_hash(near))] == ["near"]
    assert len(read_tuned_schedules(path, CPUS["aarch64"])) == 0
    assert read_tuned_schedules(path, V3).near(_text(16)) == []
    found = read_tuned_schedules(path, replace(V3, cores=64), nearest=True).near(_text(16))
    assert [v.trace for v in found] == ["near", "far"]
    assert not any(v.exact for v in found)
    assert read_tuned_schedules(path, V3, nearest=True).near(_text("N")) == []
