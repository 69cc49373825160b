"""The ring: chosen methods on measured spaces, with many seeds each.

Runs share nothing, so they can go on in several processes; all but the wall time of a run is the
same for the same seed.
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
from tilewright.tune.method import Method
from tilewright.tune.search import search
from tilewright.tune.space.table import replay_space


@node
class Settings:
    """What all methods get: trials, how many are measured at once, seeds, and processes to use."""

    trials: int = 256
    batch: int = 16
    seeds: int = 20
    first_seed: int = 0
    jobs: int = 1


@node
class Job:
    """One run: a method on a space with a seed."""

    space: str
    method: Method
    seed: int
    trials: int
    batch: int


@node
class Run:
    """What came of a seed: the best time after each trial, and the seconds that it took."""

    seed: int
    best: tuple[float, ...]
    failures: int
    wall: float


@dataclass(frozen=True)
class Standing:
    """A method on a space over all seeds."""

    space: str
    method: Method
    optimum: float
    runs: tuple[Run, ...]

    @property
    def t95(self) -> Quartiles:
        """Trials to within 5 % of the optimum."""
        return quartiles([trials_to_reach(run.best, self.optimum) for run in self.runs])

    @property
    def mean_t95(self) -> float:
        """The mean of the same, a run that never came there counting as all of its trials."""
        trials = [min(trials_to_reach(r.best, self.optimum), len(r.best)) for r in self.runs]
        return sum(trials) / len(trials)

    @property
    def reached(self) -> float:
        """The share of seeds that came within 5 % of the optimum at all."""
        hits = (trials_to_reach(r.best, self.optimum) <= len(r.best) for r in self.runs)
        return sum(hits) / len(self.runs)

    def regret(self, trials: int) -> Quartiles:
        """How far above the optimum the best of so many trials is."""
        return quartiles([regret(run.best, self.optimum, trials) for run in self.runs])

    @property
    def wall(self) -> float:
        """Seconds a run took, at the median."""
        return quartiles([run.wall for run in self.runs]).median


def run_one(job: Job) -> Run:
    """Search once, alone."""
    space = replay_space(job.space)
    start = time.perf_counter()
    strategy = job.method.start(space, job.seed)
    results = search(strategy, space.measure, job.trials, job.batch)
    wall = time.perf_counter() - start
    return Run(job.seed, best_so_far(results), sum(bool(r.failure) for r in results), wall)


def compete(
    spaces: Sequence[str],
    methods: Sequence[Method],
    settings: Settings,
    show: Callable[[str], None] = lambda text: None,
) -> list[Standing]:
    """All methods on all spaces; for each space the best comes first."""
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    standings: list[Standing] = []
    for space in spaces:
        optimum = replay_space(space).optimum
        jobs = [Job(space, m, s, settings.trials, settings.batch) for m in methods for s in seeds]
        runs = _shown(run_all(run_one, jobs, settings.jobs), jobs, show)
        found = [Standing(space, m, optimum, tuple(islice(runs, len(seeds)))) for m in methods]
        standings += ranked(found)
    return standings


def _shown(runs: Iterable[Run], jobs: Sequence[Job], show: Callable[[str], None]) -> Iterator[Run]:
    for number, (run, job) in enumerate(zip(runs, jobs, strict=True), 1):
        show(f"{job.space}: {number} of {len(jobs)} runs, {job.method}")
        yield run


def ranked(standings: Iterable[Standing]) -> list[Standing]:
    """Standings of one space, the best first."""
    return sorted(standings, key=_rank)


def _rank(standing: Standing) -> tuple[float, float, float]:
    return (standing.t95.median, standing.regret(64).median, standing.regret(10**9).median)


J = TypeVar("J")


def run_all(run: Callable[[J], Run], jobs: Iterable[J], processes: int) -> Iterator[Run]:
    """What came of each job, in their order, some going on at once."""
    if processes == 1:
        yield from map(run, jobs)
        return
    # Spawned, not forked: LightGBM's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield from pool.map(run, jobs)
