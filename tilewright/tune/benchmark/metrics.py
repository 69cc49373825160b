"""Metrics of a search, from the best time after each trial, and of a cost model.

`t95` is the number of trials until the best is within 5 % of the optimum, infinite if that never
happens. `regret@n` is how much slower than the optimum the best of n trials is, as a fraction. For
cost models it is Kendall's tau: over all pairs with different times, the fraction in the right
order minus the fraction in the wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from tilewright.core.node import node
from tilewright.tune.candidate import Result

OPTIMUM_SLACK = 0.05
"""What counts as the optimum: the 5 % of `t95`."""


@node
class Quartiles:
    """The median and the quartiles of a figure over the seeds."""

    low: float
    median: float
    high: float


def best_so_far(results: Sequence[Result]) -> tuple[float, ...]:
    """The best time after each trial; infinite while everything failed."""
    return tuple(accumulate((result.seconds for result in results), min))


def trials_to_reach(best: Sequence[float], optimum: float, slack: float = OPTIMUM_SLACK) -> float:
    """The trials after which the best is at most `slack` above the optimum."""
    reached = (number for number, time in enumerate(best, 1) if time <= optimum * (1 + slack))
    return float(next(reached, math.inf))


def regret(best: Sequence[float], optimum: float, trials: int) -> float:
    """How far above the optimum the best of the first `trials` is."""
    return best[min(trials, len(best)) - 1] / optimum - 1 if best else math.inf


def quartiles(figures: Sequence[float]) -> Quartiles:
    """By the nearest rank, because some figures may be infinite."""
    ordered = sorted(figures)
    places = (math.ceil(share * len(ordered)) - 1 for share in (0.25, 0.5, 0.75))
    return Quartiles(*(ordered[place] for place in places))


def kendall(scores: np.ndarray, seconds: np.ndarray) -> float:
    """How well scores (higher for faster) agree with times; what failed is slower than all else."""
    times = np.where(np.isfinite(seconds), seconds, np.finfo(np.float64).max)
    pairs = np.triu_indices(len(times), 1)
    truth = np.sign(times[pairs[1]] - times[pairs[0]])
    guess = np.sign(scores[pairs[0]] - scores[pairs[1]])
    different = np.count_nonzero(truth)
    return float((truth * guess).sum() / different) if different else 0.0
