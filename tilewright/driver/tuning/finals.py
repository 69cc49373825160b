"""The last word on a task: its best candidates against the built-in schedule, in turn.

Times of a search are taken at different moments, and the best of many is partly luck. What counts
for `--tuned` is a comparison of its own, which goes into the records whatever comes of it.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from statistics import median

from tilewright.driver.tuning.task_search import TaskSearch, steps_of
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer
from tilewright.tune.measure.significance import Verdict, faster
from tilewright.tune.records import Record
from tilewright.tune.verdicts import LEVEL, SLOWER, Verdicts

# How many of a task's candidates are compared before the built-in schedule is left to it.
FINALISTS = 2
# Shares of the time below which no comparison is worth its seconds.
LEAST_GAIN = 0.01


def finalists(search: TaskSearch) -> list[Record]:
    """The measured candidates that may be faster than the built-in schedule, the best first."""
    builtin = search.task.scheduled.builtin
    best: dict[str, Record] = {}
    for record in search.ledger.of(search.task):
        steps = steps_of(record.trace)
        if not (record.rival or record.failure or steps == builtin):
            best.setdefault(steps, record)
    found = sorted(best.values(), key=lambda record: median(record.times))
    limit = (1 - LEAST_GAIN) * search.builtin
    return [record for record in found if median(record.times) < limit][:FINALISTS]


def decide(search: TaskSearch, measurer: Measurer, job: Job) -> None:
    """Compare finalists until one wins; comparisons that were made before are not repeated."""
    for record in finalists(search):
        known = _compared(search, record)
        if known is None:
            verdict = measurer.head_to_head(job, steps_of(record.trace), None)
            known = comparison(search, record.trace, verdict)
            search.ledger.add(search.task, known)
        if not known.failure:
            return


def comparison(search: TaskSearch, trace: str, verdict: Verdict) -> Record:
    """What a comparison of a trace with the built-in schedule came to, as a record."""
    ledger, task = search.ledger, search.task
    ours, its = verdict.times or ((), ())
    about = (task.workload, ledger.target, trace, ours, _failure(verdict), time.time())
    rest = (ledger.versions, ledger.of_task(task), task.scheduled.builtin, its)
    return Record(*about, *rest)


def rejected(search: TaskSearch, trace: str, why: str) -> Record:
    """A record that a trace is not to be used, although it won alone."""
    lost = comparison(search, trace, Verdict(math.inf, 1.0, False, "lost"))
    return replace(lost, failure=f"{SLOWER}: {why}")


def winner(search: TaskSearch) -> tuple[str, float] | None:
    """The trace that `--tuned` takes for a task and how much it gains, if there is one."""
    task = search.task
    comparisons = [
        r for r in search.ledger.records.of(task.workload, search.ledger.target) if r.rival
    ]
    for verdict in Verdicts(comparisons).of(task.workload):
        if verdict.rival == task.scheduled.builtin:
            return verdict.trace, verdict.gain
    return None


def _compared(search: TaskSearch, record: Record) -> Record | None:
    """The newest comparison of the same steps with the present built-in schedule."""
    builtin = search.task.scheduled.builtin
    found = [
        other
        for other in search.ledger.of(search.task)
        if other.rival == builtin and steps_of(other.trace) == steps_of(record.trace)
    ]
    return max(found, key=lambda other: other.measured_at, default=None)


def _failure(verdict: Verdict) -> str:
    if verdict.significant:
        return ""
    if verdict.failure:
        return verdict.failure
    ours, its = verdict.times
    return SLOWER if faster(its, ours).significant else LEVEL
