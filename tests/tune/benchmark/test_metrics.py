from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright.tune.benchmark.metrics import (
    Quartiles,
    best_so_far,
    kendall,
    quartiles,
    regret,
    trials_to_reach,
)
from tilewright.tune.candidate import Candidate, Result

BEST = (math.inf, 3.0, 3.0, 1.05, 1.0)


def test_the_best_never_rises() -> None:
    one = Candidate(())
    results = [Result(one, failure="crash"), Result(one, (2.0,)), Result(one, (3.0,))]
    assert best_so_far(results) == (math.inf, 2.0, 2.0)


def test_trials_to_reach() -> None:
    assert trials_to_reach(BEST, 1.0) == 4
    assert trials_to_reach(BEST, 1.0, slack=0.0) == 5
    assert trials_to_reach(BEST[:3], 1.0) == math.inf


def test_regret() -> None:
    assert regret(BEST, 1.0, 2) == 2.0
    assert regret(BEST, 1.0, 64) == 0.0  # a search that ended early has its last best
    assert regret(BEST, 1.0, 1) == math.inf
    assert regret((), 1.0, 64) == math.inf


def test_quartiles_bear_infinite_figures() -> None:
    assert quartiles([4.0, 1.0, math.inf, 2.0]) == Quartiles(1.0, 2.0, 4.0)
    assert quartiles([5.0]) == Quartiles(5.0, 5.0, 5.0)
    assert quartiles([1.0, math.inf, math.inf]).median == math.inf


def test_kendall() -> None:
    seconds = np.array([1.0, 2.0, 2.0, 4.0, np.inf])
    assert kendall(-np.arange(5.0), seconds) == 1.0
    assert kendall(np.arange(5.0), seconds) == -1.0
    assert kendall(np.zeros(5), seconds) == 0.0
    assert kendall(np.array([4.0, 3.0, 2.0, 0.0, 1.0]), seconds) == pytest.approx(7 / 9)
    assert kendall(np.zeros(3), np.ones(3)) == 0.0
