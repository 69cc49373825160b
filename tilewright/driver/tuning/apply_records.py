"""Schedules from records: a kernel's trace is replayed where it beat the built-in schedule.

Where a record no longer applies, the kernel gets the built-in schedule, and `explain` says why.
"""

from __future__ import annotations

import time

from tilewright.core.errors import Error
from tilewright.driver.kernel.backend import backend_of
from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.trace import Trace, parse_trace
from tilewright.target.target import Target
from tilewright.tune.tuned_schedules import TunedSchedule, TunedSchedules
from tilewright.tune.workload import workload_hash, workload_text

RULE = "tuned"


class RecordedSchedules:
    """A `ScheduleProvider` that asks the records first."""

    def __init__(self, schedules: TunedSchedules) -> None:
        self.schedules = schedules

    def __call__(self, func: Func, constants: frozenset[str], target: Target) -> ScheduledFunc:
        """The tuned schedule of a function, or the built-in one."""
        builtin = backend_of(target).schedule(func, constants, target)
        text = workload_text(func, constants)
        found = self.schedules.of(workload_hash(text))
        fitting = [v for v in found if v.baseline == str(builtin.trace)]
        if fitting:
            return _replayed(fitting[0], func, target, builtin)
        if found:
            return _noted(
                builtin, f"{_name(found[0])} beat an earlier built-in schedule: tune again"
            )
        near = self.schedules.near(text)
        return _replayed(near[0], func, target, builtin) if near else builtin


def replay(trace: str) -> Trace:
    """The steps of a record."""
    return parse_trace(trace, "record")


def _replayed(
    schedule: TunedSchedule, func: Func, target: Target, builtin: ScheduledFunc
) -> ScheduledFunc:
    """A tuned schedule's trace on a function; one for other sizes is checked first."""
    try:
        trace = replay(schedule.trace)
        made = trace.replay(func, legality=not schedule.exact)
        if not schedule.exact:
            backend_of(target).finalize(made, target)
    except (Error, AssertionError) as error:
        # A primitive that is given what was never meant for it may fail in any way it checks.
        why = str(error).partition("\n")[0] or type(error).__name__
        return _noted(builtin, f"{_name(schedule)} does not replay: {why}")
    gain = f"{schedule.gain:.2f} times as fast as the built-in schedule"
    note = (
        f"{gain}, {_name(schedule)}" if schedule.exact else f"from the nearest, {_name(schedule)}"
    )
    return ScheduledFunc(made, trace, RULE, note)


def _name(schedule: TunedSchedule) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(schedule.measured_at))
    return f"record of {day}"


def _noted(scheduled: ScheduledFunc, note: str) -> ScheduledFunc:
    return ScheduledFunc(scheduled.func, scheduled.trace, scheduled.rule, note)
