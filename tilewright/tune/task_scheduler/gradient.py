"""Ansor's scheduler: the next batch goes where it is expected to shorten the model's latency most.

The gain of a batch for task i, with weight w and best time g after t batches, is estimated as

    w · (α · (g(t−Δ) − g(t)) / Δ + (1 − α) · max(g / t, g − β · C / V))

The first term is how it went lately, the second how it might go: by g over t, or, for a task that
lags behind, nearly to the throughput V of the fastest task of its kind, C being its work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.tune.task_scheduler.task_scheduler import Progress, Task, TaskScheduler


class GradientScheduler(TaskScheduler):
    """The task with the largest expected gain."""

    def __init__(
        self,
        tasks: Sequence[Task],
        recent: float = 0.2,
        similar: float = 2.0,
        window: int = 3,
    ) -> None:
        super().__init__(tasks)
        self.recent = recent
        self.similar = similar
        self.window = window

    def choose(self, open_tasks: Sequence[int]) -> int:
        """A task that had no batch yet, else the largest expected gain."""
        return max(open_tasks, key=lambda number: self.gain(self.tasks[number]))

    def gain(self, one: Progress) -> float:
        """Seconds of latency that one more batch is expected to save."""
        if not one.best:
            return math.inf
        if not math.isfinite(one.now):
            return 0.0  # nothing has run yet: there is no sign that anything will
        back = min(self.window, len(one.best) - 1)
        before = one.best[-1 - back] if back else one.now
        slope = (before - one.now) / back if back and math.isfinite(before) else 0.0
        hope = max(one.now / len(one.best), one.now - self._reachable(one))
        return one.task.weight * (self.recent * slope + (1 - self.recent) * hope)

    def _reachable(self, one: Progress) -> float:
        """The time at the throughput of the fastest task of the same kind, with some doubt."""
        alike = [other for other in self.tasks if other.task.kind == one.task.kind]
        if not one.task.kind or len(alike) == 1:
            return math.inf
        fastest = max(other.task.flops / other.now for other in alike)
        return self.similar * one.task.flops / fastest
