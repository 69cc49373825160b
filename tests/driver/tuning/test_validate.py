from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.driver.tuning.fakes import FakeMeasurer, database, session
from tilewright.driver.tuning.task_search import TaskSearch, steps_of
from tilewright.driver.tuning.validate import decide, finalists, rejected, winner
from tilewright.tune.measure.significance import Comparison, faster
from tilewright.tune.records import Records
from tilewright.tune.tuned_schedules import NO_DIFFERENCE, SLOWER

JOB: Any = None


class Arena(FakeMeasurer):
    """Comparisons end as told, one after the other."""

    def __init__(self, *ratios: float) -> None:
        self.ratios = list(ratios)
        self.met: list[str] = []

    def head_to_head(self, job: Any, first: str | None, second: str | None) -> Comparison:
        if first is None:
            return faster([1.0] * 20, self.times)
        self.met.append(first)
        ratio = self.ratios.pop(0)
        self.times = [ratio * (1 + 1e-4 * i) for i in range(20)]
        return faster(self.times, [1.0] * 20)


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TaskSearch]:
    """A task of which seven candidates were measured, each faster than the one before."""
    monkeypatch.setattr(FakeMeasurer, "log", [])
    with Records(database(tmp_path)) as records:
        found = session(records, trials=1).report.searches[0]
        found.round(FakeMeasurer(), JOB, 5)  # type: ignore[arg-type]
        yield found


def _failures(search: TaskSearch) -> list[str]:
    return [record.failure for record in search.writer.records.comparisons()]


def test_the_best_come_first_and_the_built_in_one_never(search: TaskSearch) -> None:
    found = finalists(search)
    assert [steps_of(record.trace) for record in found] == FakeMeasurer.log[:2:-1][: len(found)]
    assert all(steps_of(r.trace) != search.task.scheduled.builtin for r in found)
    search.builtin = 1e-12
    assert finalists(search) == []


def test_the_first_winner_ends_it(search: TaskSearch) -> None:
    arena = Arena(0.5)
    decide(search, arena, JOB)  # type: ignore[arg-type]
    assert _failures(search) == [""]
    found = winner(search)
    assert found is not None
    assert (steps_of(found[0]), round(found[1], 2)) == (arena.met[0], 2.0)
    decide(search, Arena(), JOB)  # type: ignore[arg-type]


def test_losers_are_kept_and_not_compared_again(search: TaskSearch) -> None:
    decide(search, Arena(1.0, 1.5), JOB)  # type: ignore[arg-type]
    assert _failures(search) == [NO_DIFFERENCE, SLOWER]
    assert winner(search) is None
    decide(search, Arena(), JOB)  # type: ignore[arg-type]


def test_a_changed_built_in_schedule_is_compared_anew(search: TaskSearch) -> None:
    decide(search, Arena(0.5), JOB)  # type: ignore[arg-type]
    changed = replace(search.task.scheduled, builtin="split()\n")
    search.task = replace(search.task, scheduled=changed)
    assert winner(search) is None
    decide(search, Arena(0.8), JOB)  # type: ignore[arg-type]
    found = winner(search)
    assert found is not None
    assert round(found[1], 2) == 1.25


def test_a_winner_that_lost_in_the_model_is_the_last_word(search: TaskSearch) -> None:
    """The others of the task were slower than it."""
    decide(search, Arena(0.5), JOB)  # type: ignore[arg-type]
    first = winner(search)
    assert first is not None
    search.writer.add(search.task, rejected(search, first[0], NO_DIFFERENCE))
    assert winner(search) is None
    before = len(search.writer.records)
    decide(search, Arena(0.9), JOB)  # type: ignore[arg-type]
    assert winner(search) is None
    assert len(search.writer.records) == before
