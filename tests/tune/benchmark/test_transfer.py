from __future__ import annotations

import pytest

from tilewright.core.errors import ConfigError
from tilewright.tune.benchmark.compare_methods import BenchmarkSettings
from tilewright.tune.benchmark.transfer import halves, saved, transfer


@pytest.mark.slow
def test_what_others_have_taught_saves_trials(products: list[str]) -> None:
    settings = BenchmarkSettings(trials=24, batch=4, seeds=3)
    leaderboard = transfer(products, "evolutionary", settings)
    assert {one.space for one in leaderboard} == set(products)
    assert {str(one.method) for one in leaderboard} == {
        "evolutionary+lightgbm",
        "evolutionary+pretrained",
    }
    shares = saved(leaderboard)
    assert set(shares) == set(products)
    assert sum(shares.values()) / len(shares) < 0.6


def test_the_same_seed_gives_the_same(products: list[str]) -> None:
    settings = BenchmarkSettings(trials=12, batch=4, seeds=1)
    once, again = (transfer(products[:2], "annealing", settings) for _ in range(2))
    assert [run.best for one in once for run in one.runs] == [
        run.best for one in again for run in one.runs
    ]


def test_halves() -> None:
    one, two = halves(["a", "b", "c", "d", "e"], 0)
    assert sorted(one + two) == ["a", "b", "c", "d", "e"]
    assert abs(len(one) - len(two)) == 1
    assert halves(["e", "d", "c", "b", "a"], 0) == (one, two)
    with pytest.raises(ConfigError) as caught:
        halves(["a"], 0)
    assert caught.value.code == "lab.too-few"
