"""What other processes did to a time.

Work on one thread takes no longer than the processor time of that thread: what is above it was
spent waiting for a core, and is taken off. What is left of such a disturbance are caches that have
to be filled again. Where several threads work together nobody can tell what the others lost by
one's waiting: such a time is spoilt, and on a machine where others run all of them may be.
"""

from __future__ import annotations

import resource
import time
from typing import NamedTuple

from tilewright.tune.measure.evaluator import Sample

REFILL = 50e-6
"""Seconds that filling the caches again takes about, each time that another process ran."""
TOLERATED = 0.02
"""The share of a time that a disturbance may be without spoiling it."""


class Counters(NamedTuple):
    """Processor seconds of this thread, and how often any thread was taken off its core."""

    seconds: float
    switches: int


def counters() -> Counters:
    """What was counted so far."""
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    return Counters(time.thread_time(), switches)


def judge(seconds: float, before: Counters, after: Counters, threads: int) -> Sample:
    """A time without the waiting in it, if that can be told, and whether it is spoilt."""
    switches = after.switches - before.switches
    if threads > 1:
        return Sample(seconds, switches > 0)
    alone = min(seconds, after.seconds - before.seconds)
    return Sample(alone, switches * REFILL > TOLERATED * alone)
