"""What compiling costs: seconds from cold and from the cache, memory, and where the time goes.

    python benchmarks/compile_cost.py [models] [--cache DIR] [--json FILE]
    python benchmarks/compile_cost.py depth            # 12 and 96 equal layers, see depth.py

Each model of the zoo (see `zoo.py`) is compiled in a new process with an empty cache, as a program
does that says `tw.compile(path)`, then loaded in another from what the first one left. Memory is
the most that any of the processes ever had resident, beside the size of the model's file and what a
process takes that has imported the package. The stages are of a second compilation, in one process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from latency import choose
from machine import describe_machine
from results_file import write_results

from tilewright.core.worker.crash import reason
from tilewright.target.host import usable_cores

ZOO = Path(__file__).parent / "results" / "cache"
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


class CompileFailed(Exception):
    """A model that could not be compiled; the text says why."""


def measure(path: Path) -> dict[str, Any]:
    """One model, cold and cached."""
    with tempfile.TemporaryDirectory() as folder:
        cold = _run(path, "cold", folder)
        warm = _run(path, "cached", folder)
    with tempfile.TemporaryDirectory() as folder:
        staged = _run(path, "stages", folder)
    return {
        "model": path.parent.name,
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
        raise CompileFailed(reason(done.stderr) or "no message")
    return json.loads(done.stdout)


def main() -> None:
    """Measure, print a table, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="models or groups (default: all models)")
    parser.add_argument("--cache", type=Path, default=ZOO)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    names = choose(args.models, args.cache)
    rows = []
    print(f"{'model':20} {'cold s':>7} {'cached s':>9} {'file MiB':>9} {'peak MiB':>9}  arena")
    for name in names:
        try:
            row = measure(args.cache / name / "model.onnx")
        except CompileFailed as error:
            print(f"{name:20} failed: {error}", flush=True)
            continue
        rows.append(row)
        print(
            f"{name:20} {row['cold_s']:7.2f} {row['cached_s']:9.2f} {row['file_mib']:9.1f} "
            f"{row['peak_mib']:9.1f}  {' '.join(row['arena'])}",
            flush=True,
        )
    if args.json:
        write_results(args.json, describe_machine((usable_cores(),)), results=rows)


if __name__ == "__main__":
    main()
