"""Resident memory of a process that runs a model, beside ONNX Runtime's.

    python benchmarks/memory.py [models] [--cache DIR] [--json FILE]

Each model of the zoo (see `zoo.py`) is loaded and run a few times in processes of their own, which
import NumPy and one engine and nothing else: by Tilewright with an empty cache, by Tilewright from
what that left, and by ONNX Runtime. Both have as many threads as they take by default. `now` is
what is resident after the last run (VmRSS), `peak` the most that was (VmHWM). A model that is not
in the cache is compiled by a process of its own, which is gone by then; its peak stands apart.
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

HERE = Path(__file__).resolve().parent
RUNS = 5
KINDS = ("fresh", "cached", "onnxruntime")

_LOAD = {
    "tilewright": """
import tilewright
model = tilewright.compile(folder + "/model.onnx")
run = lambda: model.run(inputs)
""",
    "onnxruntime": """
import onnxruntime
session = onnxruntime.InferenceSession(folder + "/model.onnx", providers=["CPUExecutionProvider"])
run = lambda: session.run(None, inputs)
""",
}
_WORKER = """
import json, resource, sys
import numpy
folder = sys.argv[1]
with numpy.load(folder + "/inputs.npz") as file:
    inputs = dict(file)
{load}
for _ in range({runs}):
    run()
mib = lambda key: next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(key))
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps({{"now": mib("VmRSS") / 1024, "peak": mib("VmHWM") / 1024,
                   "peak_of_compiler": children / 1024}}))
"""


def measure(folder: Path) -> dict[str, Any]:
    """One model in each kind of process."""
    with tempfile.TemporaryDirectory() as cache:
        return {kind: _run(folder, kind, cache) for kind in KINDS}


def _run(folder: Path, kind: str, cache: str) -> dict[str, float]:
    engine = kind if kind in _LOAD else "tilewright"
    paths = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "TW_CACHE_DIR": cache, "PYTHONPATH": os.pathsep.join(paths)}
    program = _WORKER.format(load=_LOAD[engine], runs=RUNS)
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasureFailed(f"{kind}: {reason(done.stderr) or 'no message'}")
    return json.loads(done.stdout.splitlines()[-1])


def line(row: dict[str, Any]) -> str:
    """A row as the table shows it."""
    fresh, cached, ort = (row[kind] for kind in KINDS)
    return (
        f"{fresh['now']:7.1f} {cached['now']:7.1f} {ort['now']:7.1f}   "
        f"{fresh['peak']:7.1f} {ort['peak']:7.1f} {fresh['peak_of_compiler']:9.1f}"
    )


HEAD = f"{'MiB':20} {'fresh':>7} {'cached':>7} {'ORT':>7}   {'peak':>7} {'ORT':>7} {'compiler':>9}"

if __name__ == "__main__":
    print_table(__doc__.splitlines()[0], HEAD, measure, line)
