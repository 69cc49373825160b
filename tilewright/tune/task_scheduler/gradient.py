"""After Ansor's: the next batch goes where it is expected to shorten the model's latency most.

The gain of a batch for task i, with weight w and best time g after t batches, is estimated as

    w · (α · (g(t−Δ) − g(t)) / Δ + (1 − α) · g / t²)

The first term is how it went lately, the second how it might go: where what is left to gain falls
as 1/t, the next batch gains as 1/t², and tasks get batches as the roots of their shares of the
latency. `ansor.py` hopes for more; docs/design/0042 has how both do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.tune.task_scheduler.task_scheduler import Progress, Task, TaskScheduler


class GradientScheduler(TaskScheduler):
    """The task with the largest expected gain."""

    def __init__(self, tasks: Sequence[Task], recent: float = 0.2, window: int = 3) -> None:
        super().__init__(tasks)
        self.recent = recent
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
        return one.task.weight * (self.recent * slope + (1 - self.recent) * self.hope(one))

    def hope(self, one: Progress) -> float:
        """Seconds that one more batch might save of one run of a task."""
        return one.now / len(one.best) ** 2
