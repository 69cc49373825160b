"""The last word on a task: its best candidates against the built-in schedule, in turn.

Times of a search are taken at different moments, and the best of many is partly luck. What counts
for `--tuned` is a comparison of its own, which goes into the records whatever comes of it.
"""

from __future__ import annotations

import time
from statistics import median

from tilewright.driver.tuning.paired_comparison import Outcome, compare_twice
from tilewright.driver.tuning.task_search import TaskSearch, steps_of
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measures
from tilewright.tune.measure.significance import Verdict
from tilewright.tune.records import Record
from tilewright.tune.tuned_schedules import Verdicts

# How many of a task's candidates are compared before the built-in schedule is left to it.
FINALISTS = 2
# Shares of the time below which no comparison is worth its seconds.
LEAST_GAIN = 0.01
# How the failure of a trace ends that won alone.
IN_MODEL = "in the whole model"


def finalists(search: TaskSearch) -> list[Record]:
    """The measured candidates that may be faster than the built-in schedule, the best first."""
    builtin = search.task.scheduled.builtin
    best: dict[str, Record] = {}
    for record in search.writer.of(search.task):
        steps = steps_of(record.trace)
        if not (record.rival or record.failure or steps == builtin):
            best.setdefault(steps, record)
    found = sorted(best.values(), key=lambda record: median(record.times))
    limit = (1 - LEAST_GAIN) * search.builtin
    return [record for record in found if median(record.times) < limit][:FINALISTS]


def decide(search: TaskSearch, measurer: Measures, job: Job) -> None:
    """Compare finalists until one wins; comparisons that were made before are not repeated.

    Where one has won alone, but not in the model, the task is decided as well: the others were
    slower than that one.
    """
    for record in finalists(search):
        known = _compared(search, record)
        if known is None:
            known = comparison(search, record.trace, _compare(measurer, job, record.trace))
            search.writer.add(search.task, known)
        if not known.failure or known.failure.endswith(IN_MODEL):
            return


def _compare(measurer: Measures, job: Job, trace: str) -> Outcome:
    steps = steps_of(trace)

    def run_pair(rival_first: bool) -> Verdict:
        pair = (None, steps) if rival_first else (steps, None)
        return measurer.head_to_head(job, *pair)

    return compare_twice(run_pair)


def comparison(search: TaskSearch, trace: str, outcome: Outcome) -> Record:
    """What a comparison of a trace with the built-in schedule came to, as a record."""
    writer, task = search.writer, search.task
    about = (task.workload, writer.target, trace, outcome.times, outcome.result, time.time())
    rival = (task.scheduled.builtin, outcome.rival_times)
    return Record(*about, writer.versions, writer.of_task(task), *rival)


def rejected(search: TaskSearch, trace: str, result: str) -> Record:
    """A record that a trace is not to be used: it won alone, but this came of it in the model."""
    return comparison(search, trace, Outcome(f"{result} {IN_MODEL}"))


def winner(search: TaskSearch) -> tuple[str, float] | None:
    """The trace that `--tuned` takes for a task and how much it gains, if there is one."""
    task = search.task
    comparisons = [
        r for r in search.writer.records.of(task.workload, search.writer.target) if r.rival
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
        for other in search.writer.of(search.task)
        if other.rival == builtin and steps_of(other.trace) == steps_of(record.trace)
    ]
    return max(found, key=lambda other: other.measured_at, default=None)
