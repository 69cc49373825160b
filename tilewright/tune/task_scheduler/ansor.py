"""Ansor's scheduler: a task is expected to reach the throughput of others of its kind.

The gain of a batch for task i, with weight w and best time g after t batches, is estimated as

    w · (α · (g(t−Δ) − g(t)) / Δ + (1 − α) · max(g / t, g − β · C / V))

V is the throughput of the fastest task of its kind, C the work of this one. For a task that cannot
reach it, such as a memory-bound GEMM, the estimate stays too high, and other tasks get too little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.tune.task_scheduler.gradient import GradientScheduler
from tilewright.tune.task_scheduler.task_scheduler import Progress, Task


class AnsorScheduler(GradientScheduler):
    """The task with the largest expected gain, by what is alike."""

    def __init__(
        self,
        tasks: Sequence[Task],
        recent: float = 0.2,
        window: int = 3,
        similar: float = 2.0,
    ) -> None:
        super().__init__(tasks, recent, window)
        self.similar = similar

    def expected_gain(self, one: Progress) -> float:
        """By the batches so far, or, for a task that lags behind, nearly to the fastest."""
        return max(one.now / len(one.best), one.now - self._reachable(one))

    def _reachable(self, one: Progress) -> float:
        """The time at the throughput of the fastest task of the same kind, with some doubt."""
        alike = [other for other in self.tasks if other.task.kind == one.task.kind]
        if not one.task.kind or len(alike) == 1:
            return math.inf
        fastest = max(other.task.flops / other.now for other in alike)
        return self.similar * one.task.flops / fastest
