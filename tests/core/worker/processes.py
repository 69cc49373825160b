"""Looking at processes from outside."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 30.0


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not collected yet does not.

    Its main thread may end before the others: until then it cannot be collected.
    """
    process = Path(f"/proc/{pid}")
    try:
        state = (process / "stat").read_text().rsplit(")", 1)[1].split()[0]
        return state != "Z" or len(list((process / "task").iterdir())) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Wait for a condition; whether it came about."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()
