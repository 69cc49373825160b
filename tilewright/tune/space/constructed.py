"""The built-in schedules with their neighbourhood: what they would take by default, and else."""

from __future__ import annotations

from tilewright.schedule.builtin.for_target import schedule_for
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide
from tilewright.tune.space.schedule_space import ScheduleSpace


class ConstructedSpace(ScheduleSpace):
    """Every schedule that the built-in rules can make of a function."""

    name = "constructed"

    def make(self, decide: Decide) -> ScheduledFunc:
        """The rules of `schedule_for`, deciding otherwise."""
        return schedule_for(self.func_before, self.constants, self.target, decide)
