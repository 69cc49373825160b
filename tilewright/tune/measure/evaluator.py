"""How long to go on timing a candidate: AdaTune's adaptive evaluator.

Li et al., "AdaTune: Adaptive Tensor Program Compilation Made Efficient", NeurIPS 2020.

Times are asked for in small chunks. It is enough when the running mean hardly varies any more (the
coefficient of variation of the mean is under `epsilon`), or when the candidate is already known to
be slower than the incumbent, or when the repeats or the seconds are used up. Other processes make
times longer and never shorter, so the mean leaves out the slowest of the times, and the bound below
which a candidate will not come is never taken above its fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

# The share of times that counts; those above it met something else that ran.
KEPT = 0.75
# Two-sided 95 % points of Student's t for 1, 2, 3 ... degrees of freedom.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
_NORMAL = 1.96


@dataclass(frozen=True)
class Effort:
    """What timing a candidate may cost, and when it is enough.

    At least `least` and at most `most` times, which take `seconds` at most. A candidate is worse if
    it is behind the incumbent by the share `margin`, hopeless if it takes `hopeless` times as long.
    """

    least: int = 4
    most: int = 40
    seconds: float = 0.5
    epsilon: float = 0.01
    margin: float = 0.05
    hopeless: float = 3.0


def evaluate(
    sample: Callable[[], float],
    clock: Callable[[], float],
    effort: Effort,
    incumbent: float = math.inf,
) -> tuple[list[float], str]:
    """Times from `sample` until they are enough, and why they are."""
    times: list[float] = []
    start = clock()
    while True:
        times.append(sample())
        reason = enough(times, clock() - start, effort, incumbent)
        if reason:
            return times, reason


def enough(times: Sequence[float], spent: float, effort: Effort, incumbent: float) -> str:
    """Why there need not be more times, in a word; empty if there should be."""
    if min(times) > effort.hopeless * incumbent:
        return "hopeless"
    if len(times) >= effort.least:
        mean, error = estimate(times)
        lower = min(min(times), mean - _student(len(times)) * error)
        if lower > (1 + effort.margin) * incumbent:
            return "worse"
        if error < effort.epsilon * mean:
            return "stable"
    if len(times) >= effort.most:
        return "repeats"
    return "seconds" if spent >= effort.seconds else ""


def estimate(times: Sequence[float]) -> tuple[float, float]:
    """The mean of the times that count, and how far it may be off (one standard error)."""
    kept = np.sort(np.asarray(times))[: _kept(len(times))]
    if kept.size < 2:
        return float(kept.mean()), math.inf
    return float(kept.mean()), float(kept.std(ddof=1)) / math.sqrt(kept.size)


def _kept(count: int) -> int:
    return min(count, max(2, math.ceil(KEPT * count)))


def _student(count: int) -> float:
    freedom = _kept(count) - 1
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _NORMAL
