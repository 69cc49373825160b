"""The benchmark of search methods: each on tabular spaces, with many seeds.

Runs are independent and may use several processes. Everything but the wall time of a run is
determined by its seed.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from tilewright.core.node import node
from tilewright.tune.benchmark.metrics import (
    Quartiles,
    best_so_far,
    quartiles,
    regret,
    trials_to_reach,
)
from tilewright.tune.method import SearchMethod
from tilewright.tune.search import search
from tilewright.tune.space.table import tabular_space


@node
class BenchmarkSettings:
    """What all methods get: trials, batch size, seeds, and the processes to use."""

    trials: int = 256
    batch: int = 16
    seeds: int = 20
    first_seed: int = 0
    jobs: int = 1


@node
class RunSpec:
    """What to run: a method on a space with a seed."""

    space: str
    method: SearchMethod
    seed: int
    trials: int
    batch: int


@node
class Run:
    """The result of one seed: the best time after each trial, and the seconds that it took."""

    seed: int
    best: tuple[float, ...]
    failures: int
    wall: float


@dataclass(frozen=True)
class LeaderboardRow:
    """A method on a space over all seeds."""

    space: str
    method: SearchMethod
    optimum: float
    runs: tuple[Run, ...]

    @property
    def t95(self) -> Quartiles:
        """Trials to within 5 % of the optimum."""
        return quartiles([trials_to_reach(run.best, self.optimum) for run in self.runs])

    @property
    def mean_t95(self) -> float:
        """The mean of the same; a run that never got there counts as all of its trials."""
        trials = [min(trials_to_reach(r.best, self.optimum), len(r.best)) for r in self.runs]
        return sum(trials) / len(trials)

    @property
    def reached(self) -> float:
        """The fraction of seeds that came within 5 % of the optimum."""
        hits = (trials_to_reach(r.best, self.optimum) <= len(r.best) for r in self.runs)
        return sum(hits) / len(self.runs)

    def regret(self, trials: int) -> Quartiles:
        """How far above the optimum the best of so many trials is."""
        return quartiles([regret(run.best, self.optimum, trials) for run in self.runs])

    @property
    def wall(self) -> float:
        """Seconds a run took, at the median."""
        return quartiles([run.wall for run in self.runs]).median


def run_one(spec: RunSpec) -> Run:
    """Search once."""
    space = tabular_space(spec.space)
    start = time.perf_counter()
    strategy = spec.method.start(space, spec.seed)
    results = search(strategy, space.measure, spec.trials, spec.batch)
    wall = time.perf_counter() - start
    return Run(spec.seed, best_so_far(results), sum(bool(r.failure) for r in results), wall)


def compare_methods(
    spaces: Sequence[str],
    methods: Sequence[SearchMethod],
    settings: BenchmarkSettings,
    show: Callable[[str], None] = lambda text: None,
) -> list[LeaderboardRow]:
    """All methods on all spaces; for each space the best comes first."""
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    leaderboard: list[LeaderboardRow] = []
    for space in spaces:
        optimum = tabular_space(space).optimum
        specs = [
            RunSpec(space, m, s, settings.trials, settings.batch) for m in methods for s in seeds
        ]
        runs = _shown(run_all(run_one, specs, settings.jobs), specs, show)
        found = [
            LeaderboardRow(space, m, optimum, tuple(islice(runs, len(seeds)))) for m in methods
        ]
        leaderboard += ranked(found)
    return leaderboard


def _shown(
    runs: Iterable[Run], specs: Sequence[RunSpec], show: Callable[[str], None]
) -> Iterator[Run]:
    for number, (run, spec) in enumerate(zip(runs, specs, strict=True), 1):
        show(f"{spec.space}: {number} of {len(specs)} runs, {spec.method}")
        yield run


def ranked(rows: Iterable[LeaderboardRow]) -> list[LeaderboardRow]:
    """The rows of one space, the best first."""
    return sorted(rows, key=_rank)


def _rank(row: LeaderboardRow) -> tuple[float, float, float]:
    return (row.t95.median, row.regret(64).median, row.regret(10**9).median)


Spec = TypeVar("Spec")


def run_all(run: Callable[[Spec], Run], specs: Iterable[Spec], processes: int) -> Iterator[Run]:
    """The run of each spec, in their order, `processes` at a time."""
    if processes == 1:
        yield from map(run, specs)
        return
    # Spawned, not forked: LightGBM's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield from pool.map(run, specs)
