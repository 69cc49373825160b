"""Profiling of a session: when it ran and how long, in the format of Chrome's trace viewer."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import datetime
from pathlib import Path


class SessionTrace:
    """What a session did since it was made."""

    def __init__(self, prefix: str) -> None:
        stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S_%f")[:-3]
        self._path = Path(f"{prefix}_{stamp}.json")
        self._events: list[dict[str, object]] = []
        self.start_ns = time.time_ns()
        self._began = time.perf_counter_ns()

    def add(self, name: str, begin_ns: int) -> None:
        """Note what began at `begin_ns` (of `time.perf_counter_ns`) and ended now."""
        now = time.perf_counter_ns()
        self._events.append(
            {
                "cat": "Session",
                "pid": os.getpid(),
                "tid": threading.get_native_id(),
                "ts": (begin_ns - self._began) // 1000,
                "dur": (now - begin_ns) // 1000,
                "ph": "X",
                "name": name,
                "args": {},
            }
        )

    def write(self) -> str:
        """Write what was noted; the name of the file."""
        self._path.write_text(json.dumps(self._events))
        return str(self._path)
