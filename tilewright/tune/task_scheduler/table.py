"""The task schedulers by name."""

from __future__ import annotations

from tilewright.core.registry import Registry
from tilewright.tune.task_scheduler.task_scheduler import TaskScheduler

TASK_SCHEDULERS: Registry[type[TaskScheduler]] = Registry(
    "task scheduler",
    {
        "round-robin": "tilewright.tune.task_scheduler.round_robin:RoundRobin",
        "ansor": "tilewright.tune.task_scheduler.ansor:AnsorScheduler",
        "gradient": "tilewright.tune.task_scheduler.gradient:GradientScheduler",
    },
)
