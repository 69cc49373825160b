"""The baseline of task schedulers."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tune.task_scheduler.task_scheduler import TaskScheduler


class RoundRobin(TaskScheduler):
    """Every task after the other."""

    def choose(self, open_tasks: Sequence[int]) -> int:
        """The first of those that had the fewest batches."""
        return min(open_tasks, key=lambda number: len(self.tasks[number].best))
