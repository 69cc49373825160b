"""Tuned schedules from the comparisons in records: the trace to use instead of the built-in one.

The failure of a comparison is `FASTER` (empty), or begins with `NO_DIFFERENCE` or `SLOWER`. Of
several comparisons of a trace under the same conditions the newest counts. A trace is good if it
was faster somewhere and slower nowhere; the best has the largest gain. All of that holds for the
baseline of the comparison only: a built-in schedule that has changed since needs a new comparison.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from tilewright.core.node import node
from tilewright.target.target import Target
from tilewright.tune.records import Record, Records
from tilewright.tune.target_key import is_similar, target_text
from tilewright.tune.workload import distance, structure

FASTER = ""
NO_DIFFERENCE = "not faster"
SLOWER = "slower"


@node
class TunedSchedule:
    """A trace that is faster than `baseline`, its speedup (1.25: a quarter), and since when.

    It is `exact` if it was measured for the same workload, not for one of the same structure.
    """

    trace: str
    baseline: str
    gain: float
    measured_at: float
    exact: bool = True


class TunedSchedules:
    """The tuned schedules of one target, by the hashes of workloads.

    With `texts`, those of all workloads that have schedules, a workload without its own schedule
    gets the one of the nearest workload of the same structure.
    """

    def __init__(self, records: Iterable[Record], texts: Mapping[str, str] | None = None) -> None:
        self._of: dict[str, list[TunedSchedule]] = {}
        for workload, found in _by_workload(records).items():
            good = list(filter(None, (_tuned_schedule(one) for one in _by_trace(found).values())))
            if good:
                self._of[workload] = sorted(good, key=lambda v: (-v.gain, v.trace))
        self._alike: dict[str, list[str]] = {}
        self._texts = texts or {}
        for workload in sorted(self._of.keys() & self._texts.keys()):
            self._alike.setdefault(structure(self._texts[workload]), []).append(workload)

    def __len__(self) -> int:
        return len(self._of)

    @property
    def identity(self) -> str:
        """The same text for the same schedules, whatever else was measured."""
        schedules = {
            workload: [[v.trace, v.baseline, v.gain] for v in found]
            for workload, found in self._of.items()
        }
        texts = {
            workload: self._texts[workload] for found in self._alike.values() for workload in found
        }
        content = json.dumps([schedules, texts], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def of(self, workload: str) -> list[TunedSchedule]:
        """The schedules of a workload, against any baseline; the best first."""
        return self._of.get(workload, [])

    def near(self, text: str) -> list[TunedSchedule]:
        """The best schedules of workloads of the same structure, the nearest first."""
        alike = self._alike.get(structure(text), [])
        ordered = sorted(alike, key=lambda workload: distance(text, self._texts[workload]))
        return [
            TunedSchedule(v.trace, v.baseline, v.gain, v.measured_at, exact=False)
            for workload in ordered
            for v in self._of[workload][:1]
        ]


def read_tuned_schedules(path: Path, target: Target, nearest: bool = False) -> TunedSchedules:
    """The tuned schedules in a file for a target; with `nearest` also of similar machines."""
    with Records(path, read_only=True) as records:
        if not nearest:
            return TunedSchedules(records.comparisons(target_text(target)))
        found = [r for r in records.comparisons() if is_similar(r.target, target)]
        return TunedSchedules(found, records.workloads())


def typical(times: Sequence[float]) -> float:
    """The lower quartile of times: other processes on the machine make times only longer."""
    return sorted(times)[len(times) // 4]


def _by_workload(records: Iterable[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.workload, []).append(record)
    return found


def _by_trace(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """The newest comparisons of each trace with a baseline, one for all equal conditions."""
    newest: dict[tuple[object, ...], Record] = {}
    for record in sorted(records, key=lambda r: (r.measured_at, r.id)):
        newest[record.trace, record.baseline, record.target, record.conditions] = record
    found: dict[tuple[str, str], list[Record]] = {}
    for record in newest.values():
        found.setdefault((record.trace, record.baseline), []).append(record)
    return found


def _tuned_schedule(comparisons: list[Record]) -> TunedSchedule | None:
    """The result of all comparisons of one trace with one baseline; None if it is not faster."""
    won = any(record.failure == FASTER for record in comparisons)
    if not won or any(record.failure.startswith(SLOWER) for record in comparisons):
        return None
    timed = [r for r in comparisons if r.times and r.baseline_times]
    gains = [math.log(typical(r.baseline_times) / typical(r.times)) for r in timed]
    gain = math.exp(fmean(gains)) if gains else 1.0
    last = max(record.measured_at for record in comparisons)
    return TunedSchedule(comparisons[0].trace, comparisons[0].baseline, gain, last)
