"""The built-in schedule of a function, for whichever kind of machine it is."""

from __future__ import annotations

from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide
from tilewright.target.cpu import CpuTarget
from tilewright.target.target import Target


def schedule_for(
    func: Func, constants: frozenset[str], target: Target, decide: Decide | None = None
) -> ScheduledFunc:
    """Schedule a function for a machine; `decide` makes the choices that the rules leave open."""
    if isinstance(target, CpuTarget):
        return schedule_func(func, constants, target, decide)
    return schedule_for_gpu(func, constants, target, decide)
