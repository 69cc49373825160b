"""How much of the machine other processes use."""

from __future__ import annotations

import os
from pathlib import Path

IDLE = 0.1
"""The fraction of a core that others may use while something is measured."""

_TICKS = os.sysconf("SC_CLK_TCK")


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


def others_seconds() -> float:
    """Processor seconds that all other processes have used since the machine started."""
    return busy_seconds() - own_seconds(os.getpid())
