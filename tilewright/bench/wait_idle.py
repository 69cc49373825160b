"""Whether anything else is running on the machine."""

from __future__ import annotations

import os
import time
from pathlib import Path

QUIET = 0.1
"""The share of a core that others may use."""

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK = 0.3  # seconds, long beside a tick of the clock


def busy_seconds() -> float:
    """Seconds all cores together have been busy since the machine started, stolen time included."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, interrupt, soft, steal = map(int, fields)
    return (user + nice + system + interrupt + soft + steal) / _TICKS


def own_seconds(pid: int) -> float:
    """Processor seconds a process has used; none if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


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
