"""What index checks cost: models with and without them, interleaved.

    python benchmarks/index_checks.py DIR/bert_base DIR/gpt2 DIR/dlrm [--target cuda] [--json out]

A folder is one that `benchmarks/zoo.py` makes. On a CPU a call is timed, on a GPU a replay of its
graph with the inputs there. The cost is the ratio of the times with checks and without, by medians
and by minima.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from results_file import write_results

import tilewright as tw

SECONDS = 20.0
# Replays on a GPU between two changes of the model.
REPLAYS = 10


def times_of(folder: Path, target: str, seconds: float) -> dict[str, list[float]]:
    """Milliseconds of each run with checks and without."""
    with np.load(folder / "inputs.npz") as given:
        inputs = dict(given)
    models = {c: tw.compile(folder / "model.onnx", target=target, checks=c) for c in ("on", "off")}
    args = [inputs[port.name] for port in models["on"].inputs]
    found: dict[str, list[float]] = {"on": [], "off": []}
    for model in models.values():
        model(*args)
    end, names = time.monotonic() + seconds, ["on", "off"]
    while time.monotonic() < end:
        for name in names:
            found[name] += _times(models[name], args)
        names.reverse()
    return found


def _times(model: Any, args: list[np.ndarray]) -> list[float]:
    if hasattr(model, "latency"):
        return list(model.latency(*args, runs=REPLAYS))
    start = time.perf_counter()
    model(*args)
    return [(time.perf_counter() - start) * 1e3]


def row(name: str, times: dict[str, list[float]]) -> dict[str, Any]:
    """The figures of a model."""
    medians = {checks: statistics.median(t) for checks, t in times.items()}
    return {
        "model": name,
        "ms": medians,
        "cost_median": medians["on"] / medians["off"],
        "cost_min": min(times["on"]) / min(times["off"]),
        "runs": len(times["on"]),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--target", default="native")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--machine", help="its name, for the results (default: the processor's)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for folder in args.folders:
        rows.append(row(folder.name, times_of(folder, args.target, args.seconds)))
        print(json.dumps(rows[-1]), flush=True)
    if args.json:
        machine = args.machine or describe_machine(())["cpu"]
        write_results(args.json, machine, target=args.target, results=rows)


if __name__ == "__main__":
    main()
