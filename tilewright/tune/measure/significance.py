"""Whether one program is faster than another, judged from times taken in turn.

The i-th times of both were taken right after each other, so that whatever slowed the machine then
slowed both. Wilcoxon's signed-rank test looks at their ratios by rank only. Here the ranks end in
the middle: the largest differences are those of runs that something else disturbed, and count no
more than ordinary ones. The distribution is computed, not approximated, and nothing is assumed of
how times are distributed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.99
LEAST_GAIN = 0.01


@dataclass(frozen=True)
class Verdict:
    """The median of first / second, and how likely a first no faster would look like this.

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
    least_gain: float = LEAST_GAIN,
) -> Verdict:
    """Whether `first` is significantly faster than `second`, and by `least_gain` at least."""
    logs = np.log(np.asarray(first, float)) - np.log(np.asarray(second, float))
    if not logs.size:
        return Verdict(1.0, 1.0, False)
    ratio, chance = float(np.exp(np.median(logs))), signed_rank(-logs)
    significant = chance < 1 - confidence and ratio < 1 - least_gain
    return Verdict(ratio, chance, significant, times=(tuple(first), tuple(second)))


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
