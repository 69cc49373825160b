"""Waiting until nothing else is running on the machine."""

from __future__ import annotations

import time

from tilewright.core.host.machine_load import QUIET, busy_seconds

_LOOK = 0.3  # seconds, long beside a tick of the clock


def wait_until_quiet(patience: float) -> float:
    """Sleep until others use little of the machine, `patience` seconds at most; the rest of it."""
    while patience > 0:
        busy, start = busy_seconds(), time.perf_counter()
        time.sleep(min(_LOOK, patience))
        waited = time.perf_counter() - start
        patience -= waited
        if busy_seconds() - busy < QUIET * waited:
            break
    return max(0.0, patience)
