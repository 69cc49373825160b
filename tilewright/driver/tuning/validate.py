"""Validation of a task: its best candidates against the built-in schedule, in paired runs.

Times of a search are taken at different moments, and the best of many is partly luck. `--tuned`
depends on a separate paired comparison, which goes into the records whatever its result.
"""

from __future__ import annotations

import time
from statistics import median

from tilewright.driver.tuning.paired_comparison import PairedComparison, compare_twice
from tilewright.driver.tuning.task_search import TaskSearch, steps_of
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measures
from tilewright.tune.measure.significance import Comparison
from tilewright.tune.records import Record
from tilewright.tune.tuned_schedules import TunedSchedules

# How many of a task's candidates are compared before it keeps the built-in schedule.
FINALISTS = 2
# The fraction of the time below which a gain is not worth the seconds of a comparison.
MIN_GAIN = 0.01
# How the failure of a trace ends that was faster alone.
IN_MODEL = "in the whole model"


def finalists(search: TaskSearch) -> list[Record]:
    """The measured candidates that may be faster than the built-in schedule, the best first."""
    builtin = search.task.scheduled.builtin
    best: dict[str, Record] = {}
    for record in search.writer.of(search.task):
        steps = steps_of(record.trace)
        if not (record.baseline or record.failure or steps == builtin):
            best.setdefault(steps, record)
    found = sorted(best.values(), key=lambda record: median(record.times))
    limit = (1 - MIN_GAIN) * search.builtin
    return [record for record in found if median(record.times) < limit][:FINALISTS]


def decide(search: TaskSearch, measurer: Measures, job: Job) -> None:
    """Compare finalists until one is faster; comparisons that were made before are not repeated.

    Where one was faster alone, but not in the model, the task is decided as well: the others were
    slower than that one.
    """
    for record in finalists(search):
        known = _compared(search, record)
        if known is None:
            known = comparison_record(search, record.trace, _compare(measurer, job, record.trace))
            search.writer.add(search.task, known)
        if not known.failure or known.failure.endswith(IN_MODEL):
            return


def _compare(measurer: Measures, job: Job, trace: str) -> PairedComparison:
    steps = steps_of(trace)

    def run_pair(baseline_first: bool) -> Comparison:
        pair = (None, steps) if baseline_first else (steps, None)
        return measurer.head_to_head(job, *pair)

    return compare_twice(run_pair)


def comparison_record(search: TaskSearch, trace: str, outcome: PairedComparison) -> Record:
    """The result of comparing a trace with the built-in schedule, as a record."""
    writer, task = search.writer, search.task
    about = (task.workload, writer.target, trace, outcome.times, outcome.result, time.time())
    baseline = (task.scheduled.builtin, outcome.baseline_times)
    return Record(*about, writer.versions, writer.of_task(task), *baseline)


def rejected(search: TaskSearch, trace: str, result: str) -> Record:
    """A record that a trace is not to be used: faster alone, but with `result` in the model."""
    return comparison_record(search, trace, PairedComparison(f"{result} {IN_MODEL}"))


def winner(search: TaskSearch) -> tuple[str, float] | None:
    """The trace that `--tuned` takes for a task and how much it gains, if there is one."""
    task = search.task
    comparisons = [
        r for r in search.writer.records.of(task.workload, search.writer.target) if r.baseline
    ]
    for schedule in TunedSchedules(comparisons).of(task.workload):
        if schedule.baseline == task.scheduled.builtin:
            return schedule.trace, schedule.gain
    return None


def _compared(search: TaskSearch, record: Record) -> Record | None:
    """The newest comparison of the same steps with the present built-in schedule."""
    builtin = search.task.scheduled.builtin
    found = [
        other
        for other in search.writer.of(search.task)
        if other.baseline == builtin and steps_of(other.trace) == steps_of(record.trace)
    ]
    return max(found, key=lambda other: other.measured_at, default=None)
