"""The benchmark of task schedulers: the tasks of a model, as tabular spaces, with one budget.

The metric is the model's latency after each trial: the sum of weight times best time over its
tasks. It is infinite until every task has a program that runs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from tilewright.core.node import node
from tilewright.tune.benchmark.compare_methods import (
    BenchmarkSettings,
    LeaderboardRow,
    Run,
    ranked,
    run_all,
)
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.method import SearchMethod
from tilewright.tune.search import Measure, search_tasks
from tilewright.tune.space.table import tabular_space
from tilewright.tune.task_scheduler.table import TASK_SCHEDULERS
from tilewright.tune.task_scheduler.task_scheduler import Task


@node
class TabularModel:
    """A model as tabular spaces, each with the number of times its kernel occurs."""

    name: str
    weights: tuple[tuple[str, float], ...]

    @property
    def optimum(self) -> float:
        """The latency with the best program for each task."""
        return sum(weight * tabular_space(name).optimum for name, weight in self.weights)


@node
class TaskRunSpec:
    """What to run: a method with its task scheduler on a model with a seed."""

    model: TabularModel
    method: SearchMethod
    seed: int
    trials: int
    batch: int


def run_tasks(spec: TaskRunSpec) -> Run:
    """Search all tasks of a model once."""
    spaces = [tabular_space(name) for name, _ in spec.model.weights]
    weights = [weight for _, weight in spec.model.weights]
    start = time.perf_counter()
    done: list[tuple[int, Result]] = []

    def noting(number: int) -> Measure:
        def measure(candidates: Sequence[Candidate]) -> list[Result]:
            results = spaces[number].measure(candidates)
            done.extend((number, result) for result in results)
            return results

        return measure

    scheduler = TASK_SCHEDULERS.get(spec.method.task_scheduler)(
        [
            Task(space.name, weight, space.about.flops, space.about.kind)
            for space, weight in zip(spaces, weights, strict=True)
        ]
    )
    search_tasks(
        scheduler,
        [(spec.method.start(space, spec.seed), noting(i)) for i, space in enumerate(spaces)],
        spec.trials,
        spec.batch,
    )
    failures = sum(bool(result.failure) for _, result in done)
    return Run(spec.seed, _latencies(done, weights), failures, time.perf_counter() - start)


def compare_task_schedulers(
    model: TabularModel,
    methods: Sequence[SearchMethod],
    settings: BenchmarkSettings,
    show: Callable[[str], None] = lambda text: None,
) -> list[LeaderboardRow]:
    """All methods on the tasks of a model, the best first."""
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    leaderboard: list[LeaderboardRow] = []
    for method in methods:
        specs = [TaskRunSpec(model, method, s, settings.trials, settings.batch) for s in seeds]
        runs: list[Run] = []
        for run in run_all(run_tasks, specs, settings.jobs):
            runs.append(run)
            show(f"{model.name}: {len(runs)} of {len(specs)} runs, {method}")
        leaderboard.append(LeaderboardRow(model.name, method, model.optimum, tuple(runs)))
    return ranked(leaderboard)


def _latencies(done: Sequence[tuple[int, Result]], weights: Sequence[float]) -> tuple[float, ...]:
    best = [math.inf] * len(weights)
    found = []
    for number, result in done:
        best[number] = min(best[number], result.seconds)
        found.append(sum(w * b for w, b in zip(weights, best, strict=True)))
    return tuple(found)
