"""Correcting a measured time for preemption by other processes.

Work on one thread takes no longer than the CPU time of that thread: the rest was spent waiting for
a core, and is subtracted. What remains of a preemption are caches that have to be filled again. For
several threads the time lost by waiting for a preempted one is unknown: such a time is marked as
disturbed, and on a busy machine all of them may be.
"""

from __future__ import annotations

import resource
import time
from typing import NamedTuple

from tilewright.tune.measure.evaluator import Sample

REFILL = 50e-6
"""Seconds that filling the caches again takes about, each time that another process ran."""
MAX_PREEMPTED_FRACTION = 0.02
"""The fraction of a time that a preemption may cost before the time counts as disturbed."""


class Counters(NamedTuple):
    """Processor seconds of this thread, and how often any thread was taken off its core."""

    seconds: float
    switches: int


def counters() -> Counters:
    """What was counted so far."""
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    return Counters(time.thread_time(), switches)


def corrected(seconds: float, before: Counters, after: Counters, threads: int) -> Sample:
    """A time without waiting for a core, where that is known, and whether it is disturbed."""
    switches = after.switches - before.switches
    if threads > 1:
        return Sample(seconds, switches > 0)
    alone = min(seconds, after.seconds - before.seconds)
    return Sample(alone, switches * REFILL > MAX_PREEMPTED_FRACTION * alone)
