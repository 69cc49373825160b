"""The process of one engine: load a model, then time runs as asked.

    python -m tilewright.bench.worker ENGINE JOB.json        # without arguments: what is installed

It talks in lines of JSON on what was its standard output. The first says how loading went; then
every line `SECONDS` it reads is answered with the milliseconds of each run made in that time,
`kernels` with the time of each kernel where the engine can tell, and `load JOB.json` as the first
was, another model taking the place of this one. JOB.json names the model, the inputs (.npz) and
maybe the expected outputs, the threads, and where to leave the outputs.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from tilewright.bench.engines import ENGINES, Engine, EngineJob, EngineSession
from tilewright.bench.npz import write_npz
from tilewright.core.numeric_error import named, relative_error

STEADY_RUNS = 3
"""Runs before the memory in use counts as settled."""


def memory_mb(what: str) -> float:
    """Memory of this process: `VmRSS` resident now, `VmHWM` the most there ever was."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {what} line")


def timed_runs(call: Callable[[], Any], seconds: float) -> list[float]:
    """Milliseconds of each run, as many as fit into `seconds`, one at least."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def load(engine: Engine, given: Mapping[str, Any]) -> tuple[EngineSession, dict[str, Any]]:
    """Load the model, run it once; the session, and what there is to report."""
    inputs = dict(np.load(given["inputs"]))
    job = EngineJob(
        Path(given["model"]),
        inputs,
        given["threads"],
        given["dims"],
        given.get("roofline"),
        given.get("tuned"),
        given.get("disable_passes", ()),
    )
    expected = dict(np.load(given["expected"])) if given.get("expected") else None
    importlib.import_module(engine.package)  # what importing costs is not the model's
    idle = memory_mb("VmRSS")
    start = time.perf_counter()
    session = engine.load(job)
    loaded = time.perf_counter()
    result = session.call()
    first = time.perf_counter()
    peak = memory_mb("VmHWM")
    outputs = session.fetch(result)
    error = None if expected is None else relative_error(named(outputs, expected), expected)
    if given.get("outputs"):
        arrays = named(outputs, dict.fromkeys(given["output_names"]))
        write_npz(given["outputs"], arrays)
    del result, outputs
    for _ in range(STEADY_RUNS if first - loaded < 1 else 0):
        session.call()
    report = {
        "load_s": loaded - start,
        "first_ms": (first - loaded) * 1e3,
        "idle_mb": idle,
        "load_peak_mb": peak,
        "run_mb": memory_mb("VmRSS"),
        "error": error,
    }
    return session, report


def serve(engine: Engine, given: Mapping[str, Any], asked: IO[str], answers: IO[str]) -> None:
    """Load, report, then answer until the input ends."""

    def answer(message: Mapping[str, Any]) -> None:
        print(json.dumps(message), file=answers, flush=True)

    session, report = load(engine, given)
    answer(report)
    for line in asked:
        if line.strip() == "kernels":
            answer({"kernels": session.kernels() if session.kernels else []})
        elif line.startswith("load "):
            del session  # two models need not fit into memory
            session, report = load(engine, json.loads(Path(line[5:].strip()).read_text()))
            answer(report)
        else:
            start = time.process_time()
            times = timed_runs(session.call, float(line))
            spent = (time.process_time() - start) * 1e3 / len(times)
            answer({"ms": times, "cpu_ms": spent, "run_mb": memory_mb("VmRSS")})


def main(engines: Mapping[str, Engine]) -> None:
    """Run one worker, its answers on what was standard output: libraries may print, not there."""
    if len(sys.argv) == 1:
        print("\n".join(name for name, engine in engines.items() if engine.installed))
        return
    name, job = sys.argv[1:]
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        serve(engines[name], json.loads(Path(job).read_text()), sys.stdin, answers)


if __name__ == "__main__":
    main(ENGINES)
