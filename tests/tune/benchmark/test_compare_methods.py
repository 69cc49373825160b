from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.tune.benchmark.compare_methods import (
    BenchmarkSettings,
    LeaderboardRow,
    Run,
    compare_methods,
)
from tilewright.tune.method import SearchMethod

SPACE = "convolution-a100"
METHODS = [SearchMethod("random"), SearchMethod("evolutionary", "ridge")]


def _without_wall(leaderboard: list[LeaderboardRow]) -> list[tuple[str, list[Run]]]:
    return [(str(s.method), [replace(run, wall=0.0) for run in s.runs]) for s in leaderboard]


def test_the_same_seeds_give_the_same_runs_in_any_number_of_processes() -> None:
    settings = BenchmarkSettings(trials=48, seeds=2)
    first = compare_methods([SPACE], METHODS, settings)
    assert _without_wall(first) == _without_wall(compare_methods([SPACE], METHODS, settings))
    parallel = compare_methods([SPACE], METHODS, replace(settings, jobs=2))
    assert _without_wall(first) == _without_wall(parallel)
    other = compare_methods([SPACE], METHODS, replace(settings, first_seed=2))
    assert _without_wall(first) != _without_wall(other)


def test_a_model_pays_off_where_good_candidates_are_rare() -> None:
    """One configuration in 4,362 is within 5 % of the best."""
    shown: list[str] = []
    leaderboard = compare_methods(
        [SPACE], METHODS, BenchmarkSettings(trials=192, seeds=5), shown.append
    )
    best, worst = leaderboard
    assert best.method == METHODS[1]
    assert best.regret(192).median < 0.5 * worst.regret(192).median
    assert best.reached > worst.reached
    assert len(shown) == 10


def test_failures_are_counted() -> None:
    (row,) = compare_methods([SPACE], METHODS[:1], BenchmarkSettings(trials=200, seeds=2))
    assert all(0 < run.failures < 30 for run in row.runs)
    assert row.wall == pytest.approx(min(run.wall for run in row.runs))
