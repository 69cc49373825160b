"""Several spaces as one: which of them a candidate is from is its first decision."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide
from tilewright.target.target import Target
from tilewright.tune.space.constructed import ConstructedSpace
from tilewright.tune.space.schedule_space import ScheduleSpace
from tilewright.tune.space.sketch.space import SketchSpace


class UnionSpace(ScheduleSpace):
    """All candidates of several spaces of one function; defaults are those of the first."""

    name = "union"

    def __init__(self, spaces: Sequence[ScheduleSpace]) -> None:
        first = spaces[0]
        super().__init__(first.func_before, first.constants, first.target)
        self.spaces = {space.name: space for space in spaces}
        assert len(self.spaces) == len(spaces), "two spaces have the same name"

    def make(self, decide: Decide) -> ScheduledFunc:
        """Choose a space, and let it make the schedule."""
        names = tuple(self.spaces)
        return self.spaces[decide("space", names[0], names)].make(decide)


def everything(func: Func, constants: frozenset[str], target: Target) -> ScheduleSpace:
    """Constructed schedules with their neighbourhood, and sketches."""
    parts = (ConstructedSpace, SketchSpace)
    return UnionSpace([part(func, constants, target) for part in parts])
