"""The search for one task's schedule: what is known of it, and rounds of measuring more.

Everything that is measured is in the records before anything else is done with it, so that a
session which is killed has lost what it was measuring and nothing else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tilewright.driver.tuning.extract_tasks import TuningTask
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measures
from tilewright.tune.records import Pairs, Record, Records
from tilewright.tune.space.schedule_space import ScheduleSpace
from tilewright.tune.strategy.strategy import Strategy
from tilewright.tune.warm_start import earlier_results

# For traces that no decisions of the space lead to.
NO_CANDIDATE = Candidate(())


@dataclass(frozen=True)
class RecordWriter:
    """Where a session writes what it measures, and what it writes beside the times."""

    records: Records
    target: str
    versions: Pairs
    conditions: Pairs

    def of(self, task: TuningTask) -> list[Record]:
        """What is known of a task under the conditions of this session."""
        found = self.records.of(task.workload, self.target)
        wanted = self.of_task(task)
        return [record for record in found if record.conditions == wanted]

    def of_task(self, task: TuningTask) -> Pairs:
        """The conditions of a task's measurements."""
        sizes = ",".join(f"{name}={size}" for name, size in sorted(task.sizes.items()))
        own = (("precision", task.precision), ("sizes", sizes))
        return tuple(sorted((*self.conditions, *own)))

    def add(self, task: TuningTask, record: Record) -> None:
        """Write a record; from then on it is safe."""
        self.records.add([record], {task.workload: task.scheduled.text})


class TaskSearch:
    """One task in a session; `best` and `builtin` are in seconds."""

    def __init__(
        self,
        task: TuningTask,
        space: ScheduleSpace,
        strategy: Strategy,
        writer: RecordWriter,
        on_result: Callable[[TaskSearch, Result], object] = lambda search, result: None,
    ) -> None:
        self.task = task
        self.space = space
        self.strategy = strategy
        self.writer = writer
        self.on_result = on_result
        self.builtin = self.best = math.inf
        self.trials = self.failures = 0
        self.problem = ""
        self._known: dict[str, Result] = {}
        self._recall(writer.of(task))

    def __str__(self) -> str:
        best, builtin = (f"{seconds * 1e6:.4g} µs" for seconds in (self.best, self.builtin))
        return f"{self.task.about.name}: {self.trials} trials, best {best}, built-in {builtin}"

    def _recall(self, records: Iterable[Record]) -> None:
        """Go on from what was measured before, by whichever way it was found."""
        measured = [record for record in records if not record.baseline]
        self.strategy.observe(earlier_results(self.space, measured))
        for record in measured:
            self._count(steps_of(record.trace), Result(NO_CANDIDATE, record.times, record.failure))

    def _count(self, steps: str, result: Result) -> None:
        self._known[steps] = result
        self.trials += 1
        self.failures += bool(result.failure)
        self.best = min(self.best, result.seconds)
        if steps == self.task.scheduled.builtin:
            self.builtin = result.seconds
            self.problem = result.failure

    def round(self, measurer: Measures, job: Job, n: int) -> bool:
        """Measure up to `n` candidates; whether there may be more. The built-in one comes first."""
        if self.task.scheduled.builtin not in self._known:
            self._measure_builtin(measurer, job)
            n -= 1
        if self.problem:
            return False  # what the compiler does by itself does not run: nothing can be compared
        proposed = self.strategy.propose(n)
        self._measure(measurer, job, proposed)
        return len(proposed) == n

    def _measure_builtin(self, measurer: Measures, job: Job) -> None:
        """Measure the built-in schedule, which the space need not have."""
        builtin, default = self.task.scheduled.builtin, self.space.default()
        if self.space.trace(default) == builtin:
            self._measure(measurer, job, [default])
        else:
            measurer.measure(job, [(NO_CANDIDATE, builtin)], on_result=self._keep)

    def _measure(self, measurer: Measures, job: Job, candidates: list[Candidate]) -> None:
        """Measure what is new among candidates; several may come to the same steps."""
        steps = {candidate: self.space.trace(candidate) for candidate in candidates}
        new = {text: c for c, text in reversed(steps.items()) if text not in self._known}
        programs = [(candidate, text) for text, candidate in reversed(new.items())]
        measurer.measure(job, programs, self.best, self._keep)
        self.strategy.observe([replace(self._known[steps[c]], candidate=c) for c in candidates])

    def _keep(self, result: Result, steps: str) -> None:
        writer, task = self.writer, self.task
        trace = steps if result.candidate == NO_CANDIDATE else self.space.text(result.candidate)
        about = (task.workload, writer.target, trace, result.times, result.failure, time.time())
        writer.add(task, Record(*about, writer.versions, writer.of_task(task)))
        self._count(steps, result)
        self.on_result(self, result)


def steps_of(trace: str) -> str:
    """The steps of a trace without the comments above them."""
    return "".join(line for line in trace.splitlines(True) if not line.startswith("#"))
