"""Ansor's scheduler: tasks hope for as much as one of their kind has reached.

The gain of a batch for task i, with weight w and best time g after t batches, is estimated as

    w · (α · (g(t−Δ) − g(t)) / Δ + (1 − α) · max(g / t, g − β · C / V))

V is the throughput of the fastest task of its kind, C the work of this one. A task that its machine
holds to less, such as a product bound by memory, hopes for it in vain and lets others starve.
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

    def hope(self, one: Progress) -> float:
        """By the batches so far, or, for a task that lags behind, nearly to the fastest."""
        return max(one.now / len(one.best), one.now - self._reachable(one))

    def _reachable(self, one: Progress) -> float:
        """The time at the throughput of the fastest task of the same kind, with some doubt."""
        alike = [other for other in self.tasks if other.task.kind == one.task.kind]
        if not one.task.kind or len(alike) == 1:
            return math.inf
        fastest = max(other.task.flops / other.now for other in alike)
        return self.similar * one.task.flops / fastest
