"""The ring with hardware: methods search the schedules of real tasks, measured as they go.

What one method had measured is not measured again for another, so that all see the same times; the
optimum is the best that any of them found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tilewright.driver.tuning.extract_tasks import TuningTask
from tilewright.driver.tuning.task_files import write_task
from tilewright.target.cpu import CpuTarget
from tilewright.tune.benchmark.compare_methods import Run, Settings, Standing, ranked
from tilewright.tune.benchmark.metrics import best_so_far
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer
from tilewright.tune.method import Method
from tilewright.tune.search import search
from tilewright.tune.space.schedule_space import ScheduleSpace
from tilewright.tune.space.table import SCHEDULE_SPACES


@dataclass
class Bench:
    """A task on the machine; `known` has what was measured, by trace."""

    space: ScheduleSpace
    job: Job
    measurer: Measurer
    known: dict[str, Result] = field(default_factory=dict)

    def measure(self, candidates: Sequence[Candidate]) -> list[Result]:
        """Results of candidates; those of a trace that was measured are the same again."""
        traces = [self.space.trace(candidate) for candidate in candidates]
        new = {
            trace: candidate
            for trace, candidate in zip(traces, candidates, strict=True)
            if trace not in self.known
        }
        results = self.measurer.measure(self.job, [(c, trace) for trace, c in new.items()])
        self.known.update(zip(new, results, strict=True))
        return [
            replace(self.known[trace], candidate=candidate)
            for trace, candidate in zip(traces, candidates, strict=True)
        ]


def compete_live(
    tasks: Sequence[TuningTask],
    target: CpuTarget,
    methods: Sequence[Method],
    settings: Settings,
    measurer: Measurer,
    show: Callable[[str], None] = lambda text: None,
) -> list[Standing]:
    """All methods on all tasks; for each task the best comes first."""
    standings: list[Standing] = []
    for number, task in enumerate(tasks):
        scheduled = task.scheduled
        space = SCHEDULE_SPACES.get("constructed")(scheduled.func, scheduled.constants, target)
        folder = measurer.folder / f"task-{number}"
        bench = Bench(space, write_task(folder, task, target), measurer)
        runs = [
            (method, [_run(bench, method, seed, settings, show) for seed in _seeds(settings)])
            for method in methods
        ]
        optimum = min(run.best[-1] for _, found in runs for run in found)
        standings += ranked(
            [Standing(task.about.name, method, optimum, tuple(found)) for method, found in runs]
        )
    return standings


def _seeds(settings: Settings) -> range:
    return range(settings.first_seed, settings.first_seed + settings.seeds)


def _run(
    bench: Bench, method: Method, seed: int, settings: Settings, show: Callable[[str], None]
) -> Run:
    show(f"{bench.space.func_before.name}: {method}, seed {seed}")
    start = time.perf_counter()
    strategy = method.start(bench.space, seed)
    results = search(strategy, bench.measure, settings.trials, settings.batch)
    failures = sum(bool(result.failure) for result in results)
    return Run(seed, best_so_far(results), failures, time.perf_counter() - start)
