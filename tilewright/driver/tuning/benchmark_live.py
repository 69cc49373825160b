"""The benchmark of search methods with hardware: candidates are measured during the search.

A trace that was measured for one method is not measured again for another, so that all see the same
times. The optimum is the best that any of them found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tilewright.driver.tuning.extract_tasks import TuningTask
from tilewright.driver.tuning.task_files import write_task
from tilewright.target.cpu import CpuTarget
from tilewright.tune.benchmark.compare_methods import BenchmarkSettings, LeaderboardRow, Run, ranked
from tilewright.tune.benchmark.metrics import best_so_far
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer
from tilewright.tune.method import SearchMethod
from tilewright.tune.search import search
from tilewright.tune.space.schedule_space import ScheduleSpace
from tilewright.tune.space.table import SCHEDULE_SPACES


@dataclass
class LiveTask:
    """A task that is measured during the search; `known` are its results, by trace."""

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


def compare_methods_live(
    tasks: Sequence[TuningTask],
    target: CpuTarget,
    methods: Sequence[SearchMethod],
    settings: BenchmarkSettings,
    measurer: Measurer,
    show: Callable[[str], None] = lambda text: None,
) -> list[LeaderboardRow]:
    """All methods on all tasks; for each task the best comes first."""
    leaderboard: list[LeaderboardRow] = []
    for number, task in enumerate(tasks):
        scheduled = task.scheduled
        space = SCHEDULE_SPACES.get("constructed")(scheduled.func, scheduled.constants, target)
        folder = measurer.folder / f"task-{number}"
        live = LiveTask(space, write_task(folder, task, target), measurer)
        runs = [
            (method, [_run(live, method, seed, settings, show) for seed in _seeds(settings)])
            for method in methods
        ]
        optimum = min(run.best[-1] for _, found in runs for run in found)
        leaderboard += ranked(
            [
                LeaderboardRow(task.about.name, method, optimum, tuple(found))
                for method, found in runs
            ]
        )
    return leaderboard


def _seeds(settings: BenchmarkSettings) -> range:
    return range(settings.first_seed, settings.first_seed + settings.seeds)


def _run(
    live: LiveTask,
    method: SearchMethod,
    seed: int,
    settings: BenchmarkSettings,
    show: Callable[[str], None],
) -> Run:
    show(f"{live.space.func_before.name}: {method}, seed {seed}")
    start = time.perf_counter()
    strategy = method.start(live.space, seed)
    results = search(strategy, live.measure, settings.trials, settings.batch)
    failures = sum(bool(result.failure) for result in results)
    return Run(seed, best_so_far(results), failures, time.perf_counter() - start)
