"""The interface of all task schedulers: which task gets the next batch of trials.

A task is one kernel of a model; its weight is how often the kernel occurs. What counts is the sum
of weight times best time over all tasks, the model's latency.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.core.node import node


@node
class Task:
    """A kernel to tune: how often the model runs it, the work of one run, and what it is like.

    Tasks of one `kind`, if it is not empty, may be expected to reach the same throughput. The
    `least_seconds` are the seconds that a run takes at least, as far as is known of the machine.
    """

    name: str
    weight: float = 1.0
    flops: float = 1.0
    kind: str = ""
    least_seconds: float = 0.0


@dataclass
class Progress:
    """What is known of a task: its best time after each batch of trials, and what those took."""

    task: Task
    best: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    finished: bool = False

    @property
    def now(self) -> float:
        """The best time so far; infinite before any candidate ran."""
        return self.best[-1] if self.best else math.inf


class TaskScheduler(ABC):
    """Hands out batches of trials."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = [Progress(task) for task in tasks]

    def next_task(self) -> int | None:
        """The number of the task to tune next; None when all are finished."""
        open_tasks = [i for i, one in enumerate(self.tasks) if not one.finished]
        return self.choose(open_tasks) if open_tasks else None

    @abstractmethod
    def choose(self, open_tasks: Sequence[int]) -> int:
        """One of the tasks that are not finished."""

    def observe(
        self, number: int, best: float, finished: bool = False, seconds: float | None = None
    ) -> None:
        """A batch for a task is done: its best time so far, and whether its space is used up.

        `seconds` is what the batch took, where somebody has looked at the clock.
        """
        task = self.tasks[number]
        task.best.append(min(best, task.now))
        task.finished = finished
        if seconds is not None:
            task.seconds.append(seconds)

    @property
    def latency(self) -> float:
        """The weighted sum of the best times."""
        return sum(one.task.weight * one.now for one in self.tasks)
