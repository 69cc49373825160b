"""Packed models checked and timed on a GPU; needs NumPy and the driver, no compiler.

    python benchmarks/gpu/run.py bundle [--json results.json]

For each model of the folder: the greatest difference from the CPU's results, relative to their
norm, and milliseconds of one replay of its captured graph (the median), and of a whole call with
NumPy arrays in and out.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.runtime.cuda.executable import CudaExecutable
from tilewright.runtime.load import load

CALLS = 20
REPLAYS = 200


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """How far results are from those expected, relative to their norm."""
    if expected.dtype.kind not in "fc":
        return float(np.mean(found != expected))
    if found.shape != expected.shape or not np.array_equal(np.isnan(found), np.isnan(expected)):
        return float("inf")
    wide, right = found.astype(np.float64), expected.astype(np.float64)
    norm = float(np.linalg.norm(np.nan_to_num(right)))
    return float(np.linalg.norm(np.nan_to_num(wide - right))) / (norm or 1.0)


def run(file: Path) -> dict[str, Any]:
    """Check and time one packed model."""
    with np.load(io.BytesIO(lzma.decompress(file.read_bytes()))) as parts:
        inputs = {n.removeprefix("in."): parts[n] for n in parts.files if n.startswith("in.")}
        expected = {n.removeprefix("out."): parts[n] for n in parts.files if n.startswith("out.")}
        code = parts["model"].tobytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tw"
        path.write_bytes(code)
        with load(path) as model:
            assert isinstance(model, CudaExecutable)
            start = time.perf_counter()
            found = model.run(inputs)
            first = time.perf_counter() - start
            again = model.run(inputs)
            worst = max(difference(found[n], expected[n]) for n in expected)
            same = all(np.array_equal(found[n], again[n], equal_nan=True) for n in expected)
            args = [inputs[port.name] for port in model.inputs]
            replays = model.latency(*args, runs=REPLAYS)
            calls = []
            for _ in range(CALLS):
                start = time.perf_counter()
                model(*args)
                calls.append(time.perf_counter() - start)
            rows = _slowest(model, args)
    return {
        "difference": worst,
        "repeatable": same,
        "replay_ms": statistics.median(replays),
        "call_ms": statistics.median(calls) * 1e3,
        "first_s": first,
        "slowest": rows,
    }


def _slowest(model: CudaExecutable, args: list[np.ndarray], count: int = 6) -> list[list[Any]]:
    """The kernels that take longest: name, calls, milliseconds together."""
    rows = model.profile(*args, runs=3).rows
    ranked = sorted(((r.name, r.calls, statistics.median(r.ns) / 1e6) for r in rows), key=_time)
    return [[name, calls, round(ms, 4)] for name, calls, ms in ranked[:count]]


def _time(row: tuple[str, int, float]) -> float:
    return -row[2]


def main() -> None:
    """Run all packed models of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    results = {}
    for file in sorted(args.folder.glob("*.npz.xz")):
        name = file.name.removesuffix(".npz.xz")
        try:
            results[name] = row = run(file)
            print(
                f"{name:24} difference {row['difference']:.2e} repeatable {row['repeatable']} "
                f"replay {row['replay_ms']:.4f} ms call {row['call_ms']:.3f} ms "
                f"first {row['first_s']:.2f} s",
                flush=True,
            )
            for kernel in row["slowest"]:
                print("     ", *kernel)
        except Exception as error:  # one that fails must not hide the others
            results[name] = {"error": f"{type(error).__name__}: {error}"}
            print(f"{name:24} FAILED {results[name]['error'][:800]}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
