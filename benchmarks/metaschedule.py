"""Tune one model with TVM's MetaSchedule and keep what comes out, to compare our tuner with.

    .venv-tvm/bin/python benchmarks/metaschedule.py FOLDER --trials 64 --threads 2

FOLDER holds `model.onnx` and `inputs.npz` as benchmarks/kernels.py writes them. The compiled
program goes to FOLDER/metaschedule.so, where the engine `tvm-tuned` finds it. The last line printed
is JSON: the seconds that tuning and compiling took, how many candidates failed, and the curve:
after each batch the seconds since the start and the best time so far as TVM's runner measured it.
Constant operands may be laid out as the schedule wants. The cost model learns after each batch:
with no more trials than a batch, which is TVM's default, it never does.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.ir.utils import derived_object
from tvm.relax import transform
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule as ms

# Seconds for building and for running a candidate; a worker loads all of TVM first.
BUILDING, RUNNING = 300.0, 120.0
# As many as `tune_relax` measures at once.
BATCH = 64


@derived_object
class Curve(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
    """Notes after each batch when it was and how fast the best is."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.start = start
        self.best = math.inf
        self.failed = 0
        self.points: list[tuple[float, float]] = []

    def apply(
        self, task_scheduler: Any, task_id: int, candidates: Any, builds: Any, runs: Any
    ) -> None:
        """Called by TVM with the results of a batch."""
        for run in runs:
            seconds = [float(second) for second in run.run_secs or ()]
            self.failed += not seconds
            self.best = min(self.best, *seconds, math.inf)
        self.points.append((time.perf_counter() - self.start, self.best * 1e3))


def prepared(module: Any) -> Any:
    """A model as the tuner wants it: in operators of TIR, constant operands free to be laid out."""
    steps = [
        transform.DecomposeOpsForInference(),
        transform.CanonicalizeBindings(),
        relax.get_pipeline("zero"),
        transform.AttachAttrLayoutFreeBuffers(),
    ]
    return tvm.transform.Sequential(steps)(module)


def with_records(module: Any, records: str) -> Any:
    """The prepared model with the best schedules of a folder of records."""
    steps = [
        transform.MetaScheduleApplyDatabase(records),
        transform.SplitLayoutRewritePreproc(),
        transform.LiftTransformParams(),
        transform.FoldConstant(),
    ]
    return tvm.transform.Sequential(steps)(module)


def tuned_library(
    folder: Path, trials: int, threads: int, builders: int, batch: int, seed: int
) -> dict[str, Any]:
    """Tune, compile and export; what is to be told of it."""
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})
    with np.load(folder / "inputs.npz") as arrays:
        shapes = {name: list(arrays[name].shape) for name in arrays.files}
    start = time.perf_counter()
    curve = Curve(start)
    module = from_onnx(onnx.load(str(folder / "model.onnx")), shapes)
    with target, tempfile.TemporaryDirectory() as work:
        untuned = prepared(module)
        ms.relax_integration.tune_relax(
            untuned,
            {},
            target,
            work,
            max_trials_global=trials,
            num_trials_per_iter=batch,
            builder=ms.builder.LocalBuilder(max_workers=builders, timeout_sec=BUILDING),
            runner=ms.runner.LocalRunner(timeout_sec=RUNNING),
            measure_callbacks=[*ms.MeasureCallback.create("default"), curve],
            seed=seed,
        )
        program = tvm.compile(with_records(untuned, work), target)
    program.export_library(str(folder / "metaschedule.so"))
    return {
        "trials": trials,
        "seconds": round(time.perf_counter() - start, 2),
        "failed": curve.failed,
        "curve": [[round(when, 2), round(best, 5)] for when, best in curve.points],
    }


def main() -> None:
    """Tune the model in one folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--builders", type=int, help="default: one a thread")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    found = tuned_library(a.folder, a.trials, a.threads, a.builders or a.threads, a.batch, a.seed)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
