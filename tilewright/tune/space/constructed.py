"""The built-in schedules with their neighbourhood: what they would take by default, and else."""

from __future__ import annotations

from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide
from tilewright.tune.space.schedule_space import ScheduleSpace


class ConstructedSpace(ScheduleSpace):
    """Every schedule that the built-in rules can make of a function."""

    name = "constructed"

    def make(self, decide: Decide) -> ScheduledFunc:
        """The rules of `schedule_func`, deciding otherwise."""
        return schedule_func(self.func_before, self.constants, self.target, decide)
