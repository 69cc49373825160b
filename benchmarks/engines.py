"""The engines of the latency benchmark, and the worker process that runs one of them.

An engine is one line of `ENGINES`: its name and a function that loads a model and returns what
answers a dictionary of arrays with a dictionary of arrays. `latency.py` starts

    python benchmarks/engines.py ENGINE FOLDER DATA THREADS

for each, FOLDER holding `model.onnx` and DATA `inputs.npz` and `expected.npz`, and talks to it in
lines of JSON: the worker first says how loading went, then answers every line `SECONDS` with the
milliseconds of each run it made in that time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Arrays], Arrays]


def load_tilewright(path: Path, threads: int) -> tuple[Run, float]:
    """Compile with Tilewright."""
    import tilewright as tw

    start = time.perf_counter()
    model = tw.compile(str(path), threads=threads)
    return model.run, time.perf_counter() - start


def load_onnxruntime(path: Path, threads: int) -> tuple[Run, float]:
    """Load with ONNX Runtime's CPU provider, all its graph optimisations on (its default)."""
    import onnxruntime

    start = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run(inputs: Arrays) -> Arrays:
        return dict(zip(names, session.run(names, inputs), strict=True))

    return run, time.perf_counter() - start


# Name -> function from model file and thread count to the run function and the seconds loading
# took, the import of the library not counted.
ENGINES: dict[str, Callable[[Path, int], tuple[Run, float]]] = {
    "tilewright": load_tilewright,
    "onnxruntime": load_onnxruntime,
}


def relative_error(got: Arrays, expected: Arrays) -> float:
    """The largest difference of any output, relative to that output's largest magnitude.

    A NaN or infinity on one side only is an infinite error.
    """
    worst = 0.0
    for name, want in expected.items():
        value = np.asarray(got[name])
        if value.shape != want.shape:
            raise ValueError(f"output {name} has shape {value.shape}, expected {want.shape}")
        value, want = value.astype(np.float64), want.astype(np.float64)
        both = np.isfinite(value) & np.isfinite(want)
        if not np.array_equal(value[~both], want[~both], equal_nan=True):
            return float("inf")
        if both.any():
            scale = max(float(np.abs(want[both]).max()), np.finfo(np.float32).tiny)
            worst = max(worst, float(np.abs(value - want)[both].max()) / scale)
    return worst


def peak_memory_mb() -> float:
    """Most memory this process ever had resident; rusage would count the parent's too."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM line")


def timed_runs(run: Run, inputs: Arrays, seconds: float) -> list[float]:
    """Milliseconds of each run, as many as fit into `seconds`, one at least."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run(inputs)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def serve(name: str, folder: Path, data: Path, threads: int, answers: IO[str]) -> None:
    """Load the model, report, then time runs as asked until the input ends."""

    def answer(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=answers, flush=True)

    inputs = dict(np.load(data / "inputs.npz"))
    expected = dict(np.load(data / "expected.npz"))
    run, load_seconds = ENGINES[name](folder / "model.onnx", threads)
    start = time.perf_counter()
    outputs = run(inputs)
    first = time.perf_counter() - start
    error = relative_error(outputs, expected)
    del outputs
    answer({"load_s": load_seconds, "first_ms": first * 1e3, "error": error})
    for line in sys.stdin:
        times = timed_runs(run, inputs, float(line))
        answer({"ms": times, "peak_mb": peak_memory_mb()})


def main() -> None:
    """Run one worker, its answers on what was standard output: libraries may print, not there."""
    name, folder, data, threads = sys.argv[1:]
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        serve(name, Path(folder), Path(data), int(threads), answers)


if __name__ == "__main__":
    main()
