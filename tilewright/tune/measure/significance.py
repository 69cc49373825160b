"""Whether one program is significantly faster than another, from interleaved times.

The i-th times of both were taken right after each other, so that whatever slowed the machine then
slowed both. Wilcoxon's signed-rank test looks at their ratios by rank only. Here the ranks end in
the middle: the largest differences are those of runs that something else disturbed, and count no
more than ordinary ones. The distribution is computed, not approximated, and nothing is assumed of
how times are distributed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

# A gain counts where chance would show it once in a hundred times, and from one percent on.
CONFIDENCE, MIN_GAIN = 0.99, 0.01
# How far a median may be off (one standard error), in distances of quartiles by the root of how
# many there are, were they distributed normally.
MEDIAN_ERROR = math.sqrt(math.pi / 2) / (2 * NormalDist().inv_cdf(0.75))


@dataclass(frozen=True)
class Comparison:
    """A paired comparison: the median of first / second, and the p-value of "first is not faster".

    `failure` says why there is nothing to compare, else `times` has those of both.
    """

    ratio: float
    chance: float
    significant: bool
    failure: str = ""
    times: tuple[tuple[float, ...], ...] = ()

    def __str__(self) -> str:
        if self.failure:
            return f"not comparable: {self.failure}"
        word = "" if self.significant else "not significantly "
        return f"{word}faster: {self.ratio:.3f} of the time (p = {self.chance:.2g})"


def faster(
    first: Sequence[float],
    second: Sequence[float],
    confidence: float = CONFIDENCE,
    least_gain: float = MIN_GAIN,
) -> Comparison:
    """Whether `first` is significantly faster than `second`, and by `least_gain` at least."""
    logs = _logs(first, second)
    if not logs.size:
        return Comparison(1.0, 1.0, False)
    ratio, chance = float(np.exp(np.median(logs))), signed_rank(-logs)
    significant = chance < 1 - confidence and ratio < 1 - least_gain
    return Comparison(ratio, chance, significant, times=(tuple(first), tuple(second)))


def least_shown(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> float:
    """The least gain that would show in as many times that vary as these do, as a fraction.

    What their median came to does not enter, so that one may take times until a small gain would
    show: who goes on until the median is favourable finds what is not there.
    """
    if len(first) < 2:
        return 1.0
    low, high = np.quantile(_logs(first, second), (0.25, 0.75))
    error = MEDIAN_ERROR * float(high - low) / math.sqrt(len(first))
    return NormalDist().inv_cdf(confidence) * error


def _logs(first: Sequence[float], second: Sequence[float]) -> np.ndarray:
    ratios: np.ndarray = np.log(np.asarray(first, float)) - np.log(np.asarray(second, float))
    return ratios


def signed_rank(differences: np.ndarray) -> float:
    """The chance that differences around zero come out as far above it as these (one-sided)."""
    differences = differences[differences != 0]
    sizes = np.abs(differences)
    # Twice the mean rank of each, which is whole also where several are equal; half of the
    # differences, the larger ones, count alike.
    ranks = [2 * int((sizes < one).sum()) + int((sizes == one).sum()) + 1 for one in sizes]
    scores = np.minimum(ranks, sizes.size + 1).astype(int)
    ways = np.zeros(int(scores.sum()) + 1)
    ways[0] = 1.0
    for score in scores:
        # Half of the ways have this difference above zero, which adds its score.
        above = ways[:-score] / 2
        ways /= 2
        ways[score:] += above
    return min(1.0, float(ways[int(scores[differences > 0].sum()) :].sum()))
