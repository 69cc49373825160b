"""What compiling costs: seconds from cold and from the cache, memory, and where the time goes.

    python benchmarks/compile_cost.py [models] [--cache DIR] [--json FILE]
    python benchmarks/compile_cost.py depth            # 12 and 96 equal layers, see depth.py

Each model of the zoo (see `zoo.py`) is compiled in a new process with an empty cache, as a program
does that says `tw.compile(path)`, then loaded in another from what the first one left. Memory is
the most that any of the processes ever had resident, beside the size of the model's file and what a
process takes that has imported the package. The stages are of a second compilation, in one process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from model_table import MeasureFailed, print_table

from tilewright.core.worker.crash import reason

MIB = 1024 * 1024

_WORKER = """
import json, resource, sys, time
start = time.perf_counter()
import tilewright as tw
from tilewright.driver.compile import compile
from tilewright.driver.timings import Timings
imported = time.perf_counter()
own = lambda: next(int(l.split()[1]) for l in open("/proc/self/status") if l[:6] == "VmHWM:")
idle = own()
timings = Timings() if sys.argv[2] == "stages" else None
model = compile(sys.argv[1], timings=timings)
ready = time.perf_counter()
print(json.dumps({
    "seconds": ready - start, "import_seconds": imported - start, "idle_kib": idle,
    "peak_kib": max(own(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss),
    "stages": timings.stages if timings else {},
    "memory": [l for l in model.explain().splitlines() if l.startswith("arena ")],
    "counters": model.counters,
}))
"""


def measure(folder: Path) -> dict[str, Any]:
    """One model, cold and cached."""
    path = folder / "model.onnx"
    with tempfile.TemporaryDirectory() as cache:
        cold = _run(path, "cold", cache)
        warm = _run(path, "cached", cache)
    with tempfile.TemporaryDirectory() as cache:
        staged = _run(path, "stages", cache)
    return {
        "import_s": cold["import_seconds"],
        "file_mib": path.stat().st_size / MIB,
        "cold_s": cold["seconds"],
        "cached_s": warm["seconds"],
        "peak_mib": cold["peak_kib"] / 1024,
        "idle_mib": cold["idle_kib"] / 1024,
        "stages": staged["stages"],
        "arena": cold["memory"],
        **cold["counters"],
    }


def _run(path: Path, mode: str, cache: str) -> dict[str, Any]:
    environment = {**os.environ, "TW_CACHE_DIR": cache}
    command = [sys.executable, "-c", _WORKER, str(path), mode]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasureFailed(reason(done.stderr) or "no message")
    return json.loads(done.stdout)


def line(row: dict[str, Any]) -> str:
    """A row as the table shows it."""
    return (
        f"{row['cold_s']:7.2f} {row['cached_s']:9.2f} {row['file_mib']:9.1f} "
        f"{row['peak_mib']:9.1f}  {' '.join(row['arena'])}"
    )


HEAD = f"{'model':20} {'cold s':>7} {'cached s':>9} {'file MiB':>9} {'peak MiB':>9}  arena"

if __name__ == "__main__":
    print_table(__doc__.splitlines()[0], HEAD, measure, line)
