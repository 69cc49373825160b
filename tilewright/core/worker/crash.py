"""Why a process ended, from its exit status and what it wrote to standard error."""

from __future__ import annotations

import re
import signal
from contextlib import suppress
from pathlib import Path

_ERROR_LINE = re.compile(r"[\w.]*(Error|ERROR|Exception|Failure)\b")
_NO_MEMORY = ("MemoryError", "out of memory", "bad_alloc", "Cannot allocate memory")


def crash_failure(status: int, words: str, killed_for_memory: bool, longest: int) -> str:
    """A failure such as `crashed: SIGSEGV: last words`, the words no longer than `longest`."""
    why = reason(words)[:longest]
    if killed_for_memory or any(mark in words for mark in _NO_MEMORY):
        return f"memory: {why or 'killed by the system'}"
    name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    return f"crashed: {name}{f': {why}' if why else ''}"


def reason(words: str) -> str:
    """The last error in what a program wrote, with all lines of its message, or its last line."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [i for i, line in enumerate(lines) if _ERROR_LINE.match(line)]
    start = errors[-1] if errors else len(lines) - 1
    return " ".join(lines[max(start, 0) :])


def memory_kills() -> int:
    """How often Linux has killed a process for lack of memory; 0 where it does not tell."""
    with suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
