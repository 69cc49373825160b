"""How long to go on timing a candidate: AdaTune's adaptive evaluator.

Li et al., "AdaTune: Adaptive Tensor Program Compilation Made Efficient", NeurIPS 2020.

Timing goes on until the running mean hardly varies any more (the coefficient of variation of the
mean is under `epsilon`), or the candidate is already known to be slower than the incumbent, or the
repeats or the seconds are used up.

Times are not normally distributed: other processes make them longer, never shorter, and by factors.
A time during which a thread was taken off its core is known to be wrong, and counts only where
there are no others. Of the rest the mean leaves out the slowest, and the bound below which a
candidate will not come is never above its fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# The fraction of times that counts; those above it were disturbed by other processes.
KEPT_FRACTION = 0.75
# So many times at least say that a candidate is hopeless: one may always be an accident.
HOPELESS_TIMES = 2
# Reasons to stop after which nothing more is expected of further times.
FINAL_REASONS = frozenset({"stable", "worse", "hopeless"})
# Two-sided 95 % points of Student's t for 1, 2, 3 ... degrees of freedom.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
_NORMAL = 1.96


class Sample(NamedTuple):
    """One time, and whether a thread was taken off its core meanwhile."""

    seconds: float
    disturbed: bool = False


class Evaluation(NamedTuple):
    """Times that count, why there are no more, and how many were taken and were disturbed."""

    times: list[float]
    reason: str
    taken: int
    disturbed: int


@dataclass(frozen=True)
class Effort:
    """What timing a candidate may cost, and when it is enough.

    At least `least` undisturbed and at most `most` times, which take `seconds` at most. A candidate
    is worse if it is slower than the incumbent by the fraction `margin`, hopeless if it takes
    `hopeless` times as long.
    """

    least: int = 3
    most: int = 40
    seconds: float = 0.5
    epsilon: float = 0.01
    margin: float = 0.03
    hopeless: float = 2.0


def evaluate(
    sample: Callable[[], Sample],
    clock: Callable[[], float],
    effort: Effort,
    incumbent: float = math.inf,
) -> Evaluation:
    """Take times until they are enough."""
    samples: list[Sample] = []
    start = clock()
    while True:
        samples.append(sample())
        reason = enough(samples, clock() - start, effort, incumbent)
        if reason:
            disturbed = sum(one.disturbed for one in samples)
            return Evaluation(counted(samples, reason), reason, len(samples), disturbed)


def enough(samples: Sequence[Sample], spent: float, effort: Effort, incumbent: float) -> str:
    """Why there need not be more times, in a word; empty if there should be."""
    clean = [one.seconds for one in samples if not one.disturbed]
    if len(clean) >= HOPELESS_TIMES and min(clean) > effort.hopeless * incumbent:
        return "hopeless"
    if len(clean) >= effort.least:
        mean, error = estimate(clean)
        lower = min(min(clean), mean - _student(len(clean)) * error)
        if lower > (1 + effort.margin) * incumbent:
            return "worse"
        if error < effort.epsilon * mean:
            return "stable"
    if len(samples) >= effort.most:
        return "repeats"
    return "seconds" if spent >= effort.seconds else ""


def counted(samples: Sequence[Sample], reason: str) -> list[float]:
    """The undisturbed times, if there are any; the faster half where they did not settle."""
    clean = [one.seconds for one in samples if not one.disturbed]
    times = clean or [one.seconds for one in samples]
    return times if reason in FINAL_REASONS else sorted(times)[: math.ceil(len(times) / 2)]


def estimate(times: Sequence[float]) -> tuple[float, float]:
    """The mean of the times that count, and how far it may be off (one standard error)."""
    kept = np.sort(np.asarray(times))[: _kept(len(times))]
    if kept.size < 2:
        return float(kept.mean()), math.inf
    return float(kept.mean()), float(kept.std(ddof=1)) / math.sqrt(kept.size)


def _kept(count: int) -> int:
    return min(count, max(2, math.ceil(KEPT_FRACTION * count)))


def _student(count: int) -> float:
    freedom = _kept(count) - 1
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _NORMAL
