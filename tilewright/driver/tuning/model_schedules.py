"""A model with the schedules that its kernels are to get, and the records of its being faster.

In records such a model is a workload of its own, identified by its kernels and how often it runs
each; its trace names the schedules that were faster alone, its baseline the built-in ones. A
session that finds the same schedules again does not run the model once more: another comparison
might by chance show no difference where there is one. A session that was killed before the model
was compared leaves no such record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.driver.tuning.end_to_end import Latency, TuningModel
from tilewright.driver.tuning.task_search import RecordWriter, TaskSearch
from tilewright.tune.records import Pairs, Record
from tilewright.tune.tuned_schedules import FASTER, typical
from tilewright.tune.workload import model_hash, workload_hash


@dataclass(frozen=True)
class ModelSchedules:
    """The kernels of a model, and the traces of those that do not get their built-in schedule."""

    model: TuningModel
    writer: RecordWriter
    searches: Sequence[TaskSearch]
    traces: Mapping[str, str]

    def latency(self, measure: Callable[[], Latency]) -> Latency:
        """The recorded latency if these schedules were faster before; else what `measure` gives."""
        workload, trace, baseline, conditions = self._identity()
        wanted = (trace, baseline, conditions)
        for record in reversed(self.writer.records.of(workload, self.writer.target)):
            same = (record.trace, record.baseline, record.conditions) == wanted
            if same and record.times and record.baseline_times:
                return Latency(typical(record.baseline_times), typical(record.times), FASTER)
        found = measure()
        if found.result == FASTER:
            about = (workload, self.writer.target, trace, (found.after,), FASTER, time.time())
            rest = (self.writer.versions, conditions, baseline, (found.before,))
            self.writer.records.add([Record(*about, *rest)])
        return found

    def _identity(self) -> tuple[str, str, str, Pairs]:
        """The workload, the trace, the baseline and the conditions of its records."""
        tasks = [search.task for search in self.searches]
        sizes = ",".join(f"{name}={size}" for name, size in sorted(self.model.sizes.items()))
        own = (("precision", self.model.precision), ("sizes", sizes))
        return (
            model_hash((task.workload, task.about.weight) for task in tasks),
            _named(self.traces),
            _named({task.workload: task.scheduled.builtin for task in tasks}),
            tuple(sorted((*self.writer.conditions, *own))),
        )


def _named(traces: Mapping[str, str]) -> str:
    """A line for each kernel that has one of these schedules."""
    return "".join(f"{name} {workload_hash(trace)}\n" for name, trace in sorted(traces.items()))
