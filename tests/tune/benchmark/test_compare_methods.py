from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.tune.benchmark.compare_methods import Run, Settings, Standing, compete
from tilewright.tune.method import Method

SPACE = "convolution-a100"
METHODS = [Method("random"), Method("evolutionary", "ridge")]


def _without_wall(standings: list[Standing]) -> list[tuple[str, list[Run]]]:
    return [(str(s.method), [replace(run, wall=0.0) for run in s.runs]) for s in standings]


def test_the_same_seeds_give_the_same_ring_in_any_number_of_processes() -> None:
    settings = Settings(trials=48, seeds=2)
    first = compete([SPACE], METHODS, settings)
    assert _without_wall(first) == _without_wall(compete([SPACE], METHODS, settings))
    parallel = compete([SPACE], METHODS, replace(settings, jobs=2))
    assert _without_wall(first) == _without_wall(parallel)
    other = compete([SPACE], METHODS, replace(settings, first_seed=2))
    assert _without_wall(first) != _without_wall(other)


def test_a_model_pays_off_where_good_candidates_are_rare() -> None:
    """One configuration in 4,362 is within 5 % of the best."""
    shown: list[str] = []
    standings = compete([SPACE], METHODS, Settings(trials=192, seeds=5), shown.append)
    best, worst = standings
    assert best.method == METHODS[1]
    assert best.regret(192).median < 0.5 * worst.regret(192).median
    assert best.reached > worst.reached
    assert len(shown) == 10


def test_failures_are_counted() -> None:
    (standing,) = compete([SPACE], METHODS[:1], Settings(trials=200, seeds=2))
    assert all(0 < run.failures < 30 for run in standing.runs)
    assert standing.wall == pytest.approx(min(run.wall for run in standing.runs))
