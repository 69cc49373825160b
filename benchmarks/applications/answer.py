"""What every application reports: its answers, and how long they took.

report(answers, seconds) prints one JSON object; `benchmarks/apps.py` reads it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def repeated(work: Callable[[], Any], seconds: float) -> tuple[Any, list[float]]:
    """What `work` gives the first time, and the seconds of each time, for about `seconds`."""
    times: list[float] = []
    first = None
    while len(times) < 2 or sum(times) < seconds:
        start = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - start)
        first = found if first is None else first
    return first, times


def report(answers: Any, times: list[float]) -> None:
    """Print the answers, the least time but for the first, and the time since the first answer."""
    import onnxruntime

    engine = "tilewright" if "tilewright" in str(onnxruntime.__file__) else "onnxruntime"
    least, rest = min(times[1:]), sum(times[1:])
    found = {"engine": engine, "answers": answers, "least": least, "rest": rest}
    print(json.dumps(found))


def arguments() -> tuple[Path, float]:
    """The folder of inputs, and for how many seconds to repeat."""
    return Path(sys.argv[1]), float(sys.argv[2])
