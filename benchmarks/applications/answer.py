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


def repeated(work: Callable[[], Any], seconds: float) -> tuple[Any, list[tuple[float, float]]]:
    """What `work` gives the first time; seconds and processor seconds of each time."""
    times: list[tuple[float, float]] = []
    first = None
    while len(times) < 2 or sum(wall for wall, _ in times) < seconds:
        start = time.perf_counter(), time.process_time()
        found = work()
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
        first = found if first is None else first
    return first, times


def report(answers: Any, times: list[tuple[float, float]]) -> None:
    """Print the answers, the least times but for the first, and the time since the first answer."""
    import onnxruntime

    engine = "tilewright" if "tilewright" in str(onnxruntime.__file__) else "onnxruntime"
    walls, processor = zip(*times[1:], strict=True)
    found = {"engine": engine, "answers": answers, "least": min(walls), "cpu": min(processor)}
    print(json.dumps({**found, "rest": sum(walls)}))


def arguments() -> tuple[Path, float]:
    """The folder of inputs, and for how many seconds to repeat."""
    return Path(sys.argv[1]), float(sys.argv[2])
