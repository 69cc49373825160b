"""Sketches as a space: rules say what a schedule may look like, decisions say which it is.

A user's own rules are rows like the built-in ones, put before them:

    SketchSpace(func, constants, target, rules=(MINE, *RULES))
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide
from tilewright.target.target import Target
from tilewright.tune.space.schedule_space import ScheduleSpace
from tilewright.tune.space.sketch.derive import derive
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.table import rules_for


class SketchSpace(ScheduleSpace):
    """Every schedule that sketch rules can make of a function."""

    name = "sketches"

    def __init__(
        self,
        func: Func,
        constants: frozenset[str],
        target: Target,
        rules: Sequence[SketchRule] | None = None,
    ) -> None:
        super().__init__(func, constants, target)
        self.rules = rules_for(target) if rules is None else rules

    def make(self, decide: Decide) -> ScheduledFunc:
        """Derive a sketch and annotate it."""
        return derive(self.func_before, self.constants, self.target, self.rules, decide)
