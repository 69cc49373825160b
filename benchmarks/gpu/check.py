"""Kernels of random shapes, and whole models, compiled for a GPU and checked on it.

    python benchmarks/gpu/check.py kernels [--shapes 30] [--seed 11] [--precisions f32 fp16]
    python benchmarks/gpu/check.py models benchmarks/results/cache/resnet50 ... [--json out.json]

A kernel's results on both must agree, relative to their norm; those of sums, which cancel, relative
to the sums of the magnitudes. A model's folder has `model.onnx`,
`inputs.npz` and `expected.npz`, as `benchmarks/zoo.py` makes them; its results are compared with
those, and one replay of its captured graph is timed (the median, the inputs already on the GPU).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.config import override
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.ir.graph.nodes import Graph
from tilewright.runtime.container import Container
from tilewright.runtime.cpu.executable import Executable
from tilewright.runtime.cuda.executable import CudaExecutable

SEED = 11
WORKERS = 16
# Kernels that a process is given at a time.
CHUNK = 4
REPLAYS = 100
LARGEST = (200, 300, 260)
KINDS = (
    "matmul dense batched_matmul conv pointwise_conv depthwise max_pool average_pool softmax "
    "softmax_columns layer_norm argmax transposes gathered sum_rows sum_all max_columns mean_middle"
).split()
# Those whose terms cancel.
SUMS = ("sum", "mean")
# By precision; with 16 bits what is rounded are inputs, weights and what lies between kernels.
TOLERANCE = {"f32": 1e-5, "fp16": 4e-3, "bf16": 3e-2}

Job = tuple[str, tuple[int, int, int]]
"""The kind of a kernel, and three sizes."""
Finding = tuple[float, str]
"""The difference between the results of both machines, and in words."""


def difference(found: np.ndarray, expected: np.ndarray, scale: np.ndarray | None = None) -> float:
    """How far results are from those expected, relative to the norm of these or of `scale`."""
    if found.shape != expected.shape:
        return float("inf")
    if expected.dtype.kind not in "fc":
        return float(np.mean(found != expected)) if expected.size else 0.0
    wide, right = found.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isfinite(wide), np.isfinite(right)):
        return float("inf")
    norm = float(np.linalg.norm(np.nan_to_num(right if scale is None else scale)))
    return float(np.linalg.norm(np.nan_to_num(wide - right))) / (norm or 1.0)


def check_kernel(job: Job, precisions: Sequence[str]) -> dict[str, Finding]:
    """What is found of one kernel, by precision.

    The GPU's driver assembles code in the process that runs it: each has all of its own kernels.
    """
    from tests.differential.kernel_graphs import KERNELS

    name, sizes = job
    try:
        graph = KERNELS[name](*sizes)
        cpu = compile_container(graph, make_options(target="native", cache=False))
    except Exception as error:  # one that fails must not hide the others
        return dict.fromkeys(precisions, failed(error))
    return {precision: _found(graph, cpu, job, precision) for precision in precisions}


def _found(graph: Graph, cpu: Container, job: Job, precision: str) -> Finding:
    name, sizes = job
    given = {} if precision == "f32" else {"precision": precision}
    try:
        gpu = compile_container(graph, make_options(target="cuda", cache=False, **given))
        with override(threads=1):
            worst = compare(gpu, cpu, np.random.default_rng((SEED, *sizes)), name)
        return worst, f"{worst:.2e}"
    except Exception as error:  # nor one precision the other
        return failed(error)


def failed(error: Exception) -> Finding:
    """What is found where there are no results."""
    return float("inf"), f"{type(error).__name__}: {error}"


def random_jobs(shapes: int, seed: int = SEED) -> list[Job]:
    """Every kind of kernel at so many random shapes."""
    rng = np.random.default_rng(seed)
    return [
        (name, tuple(int(rng.integers(1, most)) for most in _largest(name)))
        for name in KINDS
        for _ in range(shapes)
    ]


def check_kernels(
    jobs: Sequence[Job], precisions: Sequence[str], told: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """How many kernels of every kind are right, and the worst difference.

    What is known so far is `told` after each kind.
    """
    check = partial(check_kernel, precisions=precisions)
    rows: dict[str, Any] = {}
    with ProcessPoolExecutor(WORKERS) as pool:
        for number, found in enumerate(pool.map(check, jobs, chunksize=CHUNK), 1):
            kind, sizes = jobs[number - 1]
            for precision, (worst, why) in found.items():
                empty = {"right": 0, "worst": 0.0, "wrong": []}
                row = rows.setdefault(f"{kind}, {precision}", empty)
                if worst <= TOLERANCE[precision]:
                    row["right"] += 1
                    row["worst"] = max(row["worst"], worst)
                else:
                    row["wrong"].append([sizes, why[:300]])
            if number == len(jobs) or jobs[number][0] != kind:
                told(rows)
    return rows


def _largest(name: str) -> tuple[int, int, int]:
    """The largest sizes of a kind; images have a square of the second."""
    return (16, 40, 40) if "conv" in name or "pool" in name or name == "depthwise" else LARGEST


def compare(gpu: Container, cpu: Any, rng: np.random.Generator, kind: str) -> float:
    """The greatest difference between the results of both machines on random inputs."""
    with CudaExecutable(gpu) as model, Executable(cpu) as right:
        inputs = [_random(port, rng) for port in model.inputs]
        expected = right(*inputs)
        scale = right(*map(abs, inputs)) if kind.startswith(SUMS) else expected
        found = (model(*inputs), expected, scale)
        return max(difference(*x) for x in zip(*map(_results, found), strict=True))


def _results(found: Any) -> tuple[np.ndarray, ...]:
    return found if isinstance(found, tuple) else (found,)


def _random(port: Any, rng: np.random.Generator) -> np.ndarray:
    if port.dtype.is_float:
        return rng.standard_normal(port.shape).astype(port.dtype.numpy)
    return rng.integers(0, 3, port.shape).astype(port.dtype.numpy)


def check_model(folder: Path) -> dict[str, Any]:
    """Compile, check and time one model."""
    start = time.perf_counter()
    container = compile_container(folder / "model.onnx", make_options(target="cuda", cache=False))
    seconds = time.perf_counter() - start
    with np.load(folder / "inputs.npz") as given, np.load(folder / "expected.npz") as wanted:
        inputs, expected = dict(given), dict(wanted)
    with CudaExecutable(container) as model:
        start = time.perf_counter()
        found = model.run(inputs)
        first = time.perf_counter() - start
        again = model.run(inputs)
        args = [inputs[port.name] for port in model.inputs]
        replays = model.latency(*args, runs=REPLAYS)
        calls = []
        for _ in range(10):
            start = time.perf_counter()
            model(*args)
            calls.append(time.perf_counter() - start)
        slowest = sorted(model.profile(*args, runs=3).rows, key=lambda r: -r.median)[:5]
    return {
        "difference": max(difference(found[n], expected[n]) for n in found),
        "repeatable": all(np.array_equal(found[n], again[n], equal_nan=True) for n in found),
        "replay_ms": statistics.median(replays),
        "call_ms": statistics.median(calls) * 1e3,
        "compile_s": seconds,
        "first_s": first,
        "slowest": [[r.name, r.calls, round(r.median / 1e6, 4)] for r in slowest],
    }


def _check_models(folders: list[Path]) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for folder in folders:
        try:
            results[folder.name] = check_model(folder)
        except Exception as error:  # one that fails must not hide the others
            results[folder.name] = {"error": f"{type(error).__name__}: {error}"[:600]}
        print(folder.name, json.dumps(results[folder.name]), flush=True)
    return results


def main() -> None:
    """Check what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["kernels", "models"])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--shapes", type=int, default=30)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--precisions", nargs="+", choices=TOLERANCE, default=["f32"])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.what == "models":
        results = _check_models(args.folders)
    else:
        jobs = random_jobs(args.shapes, args.seed)
        results = check_kernels(jobs, args.precisions, lambda rows: _write(rows, args.json))
        for name, row in results.items():
            print(name, json.dumps(row), flush=True)
    _write(results, args.json)


def _write(results: dict[str, Any], path: Path | None) -> None:
    if path:
        path.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
