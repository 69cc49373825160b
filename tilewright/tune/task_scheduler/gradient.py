"""A variant of Ansor's: the next batch goes where it shortens the model's latency most a second.

The gain of a batch for task i, with weight w and best time g after t batches, is estimated as

    w · (α · (g(t−Δ) − g(t)) / Δ + (1 − α) · (g − r) / t²)

The first term is the recent gain, the second the possible one: no program is faster than the
roofline bound r of the task. If what is left to gain falls as 1/t, the next batch gains as 1/t²,
and tasks get batches in proportion to the square roots of their possible gains. `ansor.py` expects
more; docs/log/2026-11-16-tuning-gains.md compares both. Trials of long kernels take longer, so the
gain is divided by the seconds that a batch of the task takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from tilewright.tune.task_scheduler.task_scheduler import Progress, Task, TaskScheduler

# No batch is taken to be shorter.
MIN_SECONDS = 1e-3
# A roofline is not exact: this fraction of a time may always be gained.
ROOFLINE_MARGIN = 0.05


class GradientScheduler(TaskScheduler):
    """The task with the largest expected gain a second."""

    def __init__(self, tasks: Sequence[Task], recent: float = 0.2, window: int = 3) -> None:
        super().__init__(tasks)
        self.recent = recent
        self.window = window

    def choose(self, open_tasks: Sequence[int]) -> int:
        """A task that had no batch yet, else the largest expected gain a second."""

        def worth(number: int) -> float:
            return self.gain(self.tasks[number]) / self.cost(self.tasks[number])

        return max(open_tasks, key=worth)

    def cost(self, one: Progress) -> float:
        """Seconds that one more batch is expected to take: as before, or as those of others."""
        known = one.seconds or [s for other in self.tasks for s in other.seconds]
        return max(fmean(known), MIN_SECONDS) if known else 1.0

    def gain(self, one: Progress) -> float:
        """Seconds of latency that one more batch is expected to save."""
        if not one.best:
            return math.inf
        if not math.isfinite(one.now):
            return 0.0  # nothing has run yet: there is no sign that anything will
        back = min(self.window, len(one.best) - 1)
        before = one.best[-1 - back] if back else one.now
        slope = (before - one.now) / back if back and math.isfinite(before) else 0.0
        return one.task.weight * (self.recent * slope + (1 - self.recent) * self.expected_gain(one))

    def expected_gain(self, one: Progress) -> float:
        """Seconds that one more batch might save of one run of a task."""
        return max(one.now - one.task.least_seconds, ROOFLINE_MARGIN * one.now) / len(one.best) ** 2
