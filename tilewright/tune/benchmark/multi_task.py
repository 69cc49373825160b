"""Task schedulers in the ring: the tasks of a model, replayed, share one budget of trials.

What is judged is the model's latency, the sum of weight times best time over its tasks, after each
trial; it is infinite until every task has a program that runs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from tilewright.core.node import node
from tilewright.tune.benchmark.compare_methods import Run, Settings, Standing, ranked, run_all
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.method import Method
from tilewright.tune.search import Measure, search_tasks
from tilewright.tune.space.table import replay_space
from tilewright.tune.task_scheduler.table import TASK_SCHEDULERS
from tilewright.tune.task_scheduler.task_scheduler import Task


@node
class Model:
    """Measured spaces with how often each kernel occurs."""

    name: str
    weights: tuple[tuple[str, float], ...]

    @property
    def optimum(self) -> float:
        """The latency with the best program for each task."""
        return sum(weight * replay_space(name).optimum for name, weight in self.weights)


@node
class TasksJob:
    """One run: a method with its task scheduler on a model with a seed."""

    model: Model
    method: Method
    seed: int
    trials: int
    batch: int


def run_tasks(job: TasksJob) -> Run:
    """Search all tasks of a model once."""
    spaces = [replay_space(name) for name, _ in job.model.weights]
    weights = [weight for _, weight in job.model.weights]
    start = time.perf_counter()
    done: list[tuple[int, Result]] = []

    def noting(number: int) -> Measure:
        def measure(candidates: Sequence[Candidate]) -> list[Result]:
            results = spaces[number].measure(candidates)
            done.extend((number, result) for result in results)
            return results

        return measure

    scheduler = TASK_SCHEDULERS.get(job.method.task_scheduler)(
        [
            Task(space.name, weight, space.about.flops, space.about.kind)
            for space, weight in zip(spaces, weights, strict=True)
        ]
    )
    search_tasks(
        scheduler,
        [(job.method.start(space, job.seed), noting(i)) for i, space in enumerate(spaces)],
        job.trials,
        job.batch,
    )
    failures = sum(bool(result.failure) for _, result in done)
    return Run(job.seed, _latencies(done, weights), failures, time.perf_counter() - start)


def compete_tasks(
    model: Model,
    methods: Sequence[Method],
    settings: Settings,
    show: Callable[[str], None] = lambda text: None,
) -> list[Standing]:
    """All methods on the tasks of a model, the best first."""
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    standings: list[Standing] = []
    for method in methods:
        jobs = [TasksJob(model, method, s, settings.trials, settings.batch) for s in seeds]
        runs: list[Run] = []
        for run in run_all(run_tasks, jobs, settings.jobs):
            runs.append(run)
            show(f"{model.name}: {len(runs)} of {len(jobs)} runs, {method}")
        standings.append(Standing(model.name, method, model.optimum, tuple(runs)))
    return ranked(standings)


def _latencies(done: Sequence[tuple[int, Result]], weights: Sequence[float]) -> tuple[float, ...]:
    best = [math.inf] * len(weights)
    found = []
    for number, result in done:
        best[number] = min(best[number], result.seconds)
        found.append(sum(w * b for w, b in zip(weights, best, strict=True)))
    return tuple(found)
