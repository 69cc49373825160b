"""From measurements to records and back, so that a search goes on where an earlier one ended."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.tune.candidate import Result
from tilewright.tune.records import Pairs, Record
from tilewright.tune.space.space import Space


def earlier_results(space: Space, records: Iterable[Record]) -> list[Result]:
    """What records say of candidates that the space still has, for `Strategy.observe`."""
    measured = (record for record in records if not record.baseline)
    found = ((space.parse(record.trace), record) for record in measured)
    return [Result(c, record.times, record.failure) for c, record in found if c is not None]


def to_record(
    space: Space,
    result: Result,
    workload: str,
    target: str,
    versions: Pairs,
    now: float,
) -> Record:
    """The record of a measurement that was made at `now`."""
    trace = space.text(result.candidate)
    return Record(workload, target, trace, result.times, result.failure, now, versions)
