from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from tests.tune.spaces import measure, smooth
from tilewright.tune.candidate import Result
from tilewright.tune.records import Record, Records
from tilewright.tune.search import search
from tilewright.tune.strategy.evolutionary import Evolutionary
from tilewright.tune.warm_start import earlier_results, to_record

SPACE = smooth()


def _recorded(result: Result) -> Record:
    return to_record(SPACE, result, "w", "cpu", (("tilewright", "0.1"),), 1.5)


def test_a_search_goes_on_where_it_ended(tmp_path: Path) -> None:
    with Records(tmp_path / "r.db") as records:
        first = search(Evolutionary(SPACE, Random(0)), measure, 32, batch=8)
        records.add(map(_recorded, first))
        again = Evolutionary(SPACE, Random(0))
        again.observe(earlier_results(SPACE, records.of("w", "cpu")))
        assert again.results == first
        second = search(again, measure, 32, batch=8)
    assert not {r.candidate for r in first} & {r.candidate for r in second}
    assert min(r.seconds for r in second) < min(r.seconds for r in first)


def test_failures_are_kept_too() -> None:
    (candidate,) = Evolutionary(SPACE, Random(0)).propose(1)
    failed = Result(candidate, failure="crash")
    assert earlier_results(SPACE, [_recorded(failed)]) == [failed]


def test_records_of_other_spaces_are_left_alone() -> None:
    (candidate,) = Evolutionary(SPACE, Random(0)).propose(1)
    record = _recorded(Result(candidate, (1.0,)))
    other = [replace(record, trace=text) for text in ("split(1)", "{}", '{"x0":3}')]
    assert earlier_results(SPACE, other) == []
