"""Templates: a schedule written by hand, with knobs.

    def product(sch: Schedule, constants: frozenset[str], target: Target) -> None:
        rows = sch.choose("rows", 4, lambda: (1, 2, 4, 8))
        _, row = sch.split("y.i0", [None, rows])
        sch.unroll(row)

    TemplateSpace(func, constants, target, product)

A knob is a choice; what it may be can depend on the knobs before. Called with a `Schedule` of one's
own a template is an ordinary manual schedule, with the defaults of its knobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide, Schedule
from tilewright.target.target import Target
from tilewright.tune.space.schedule_space import ScheduleSpace

Template: TypeAlias = Callable[[Schedule, frozenset[str], Target], None]


class TemplateSpace(ScheduleSpace):
    """Every schedule that a template can make of a function."""

    name = "template"

    def __init__(
        self, func: Func, constants: frozenset[str], target: Target, template: Template
    ) -> None:
        super().__init__(func, constants, target)
        self.template = template

    def make(self, decide: Decide) -> ScheduledFunc:
        """Run the template."""
        sch = Schedule(self.func_before, decide=decide)
        self.template(sch, self.constants, self.target)
        return ScheduledFunc(sch.func, sch.trace, "template")
