"""Waiting until no other process uses the machine."""

from __future__ import annotations

import time

from tilewright.core.host.machine_load import IDLE, busy_seconds

_LOOK = 0.3  # seconds, long beside a tick of the clock


def wait_until_idle(timeout: float) -> float:
    """Sleep until the machine is idle, `timeout` seconds at most; what is left of them."""
    while timeout > 0:
        busy, start = busy_seconds(), time.perf_counter()
        time.sleep(min(_LOOK, timeout))
        waited = time.perf_counter() - start
        timeout -= waited
        if busy_seconds() - busy < IDLE * waited:
            break
    return max(0.0, timeout)
