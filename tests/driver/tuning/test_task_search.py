from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.driver.tuning.fakes import FakeMeasurer, database, session
from tilewright.driver.tuning.task_search import RecordWriter, TaskSearch, steps_of
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.records import Records

JOB: Any = None


class Failing(FakeMeasurer):
    """Nothing runs."""

    def measure(
        self, job: Any, programs: Any, incumbent: float = 1.0, on_result: Any = None
    ) -> list[Result]:
        results = [Result(candidate, (), "wrong: off by 7") for candidate, _ in programs]
        for result, (_, trace) in zip(results, programs, strict=True):
            on_result(result, trace)
        return results


def test_comments_are_no_steps() -> None:
    assert steps_of('# decisions: {}\nsplit("i", [?, 4])\n') == 'split("i", [?, 4])\n'
    assert steps_of("") == ""


def test_candidates_of_the_same_steps_are_measured_once(tmp_path: Path) -> None:
    with Records(database(tmp_path)) as records:
        search = session(records, trials=1).report.searches[0]
        twins = [Candidate((("twin", n),)) for n in range(3)]
        search.space.trace = lambda candidate: "split()\n"  # type: ignore[method-assign]
        search.space.text = lambda candidate: f"# {candidate}\nsplit()\n"  # type: ignore[method-assign]
        search.strategy.observe = lambda results: seen.extend(results)  # type: ignore[method-assign]
        seen: list[Result] = []
        search._measure(FakeMeasurer(), JOB, twins)  # type: ignore[arg-type]
        assert len(records) == search.trials == 1
        assert [result.candidate for result in seen] == twins
        assert len({result.times for result in seen}) == 1


def test_a_task_whose_own_schedule_does_not_run_is_given_up(tmp_path: Path) -> None:
    with Records(database(tmp_path)) as records:
        search = session(records, trials=1).report.searches[0]
        assert not search.round(Failing(), JOB, 8)  # type: ignore[arg-type]
        assert search.problem == "wrong: off by 7"
        assert (search.trials, search.failures) == (1, 1)
        again = session(records, trials=1).report.searches[0]
        assert again.problem == search.problem


def test_a_space_without_the_built_in_schedule_still_compares_with_it(tmp_path: Path) -> None:
    with Records(database(tmp_path)) as records:
        search = session(records, trials=1, space="sketches").report.searches[0]
        assert search.space.trace(search.space.default()) != search.task.scheduled.builtin
        search.round(FakeMeasurer(), JOB, 3)  # type: ignore[arg-type]
        first, *others = records
        assert first.trace == search.task.scheduled.builtin
        assert search.builtin == first.times[0]
        assert len(others) == 2
        assert all(search.space.parse(record.trace) is not None for record in others)


def test_what_other_spaces_measured_counts_too(tmp_path: Path) -> None:
    with Records(database(tmp_path)) as records:
        first = session(records, trials=1).report.searches[0]
        first.round(FakeMeasurer(), JOB, 3)  # type: ignore[arg-type]
        (*_, last) = records
        other = replace(last, trace="# made otherwise\nsplit()\n", times=(1e-9,), failure="")
        records.add([other])
        again = session(records, trials=1).report.searches[0]
        assert again.trials == first.trials + 1
        assert again.best == 1e-9


def test_the_ledger_tells_conditions_apart(tmp_path: Path) -> None:
    with Records(database(tmp_path)) as records:
        search: TaskSearch = session(records, trials=1).report.searches[0]
        search.round(FakeMeasurer(), JOB, 2)  # type: ignore[arg-type]
        writer, task = search.writer, search.task
        assert len(writer.of(task)) == 2
        for other in (
            replace(writer, conditions=(("threads", "9"),)),
            replace(writer, target="another"),
        ):
            assert isinstance(other, RecordWriter)
            assert other.of(task) == []
        assert writer.of(replace(task, sizes={"N": 5})) == []


@pytest.fixture(autouse=True)
def _fresh_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeMeasurer, "log", [])
