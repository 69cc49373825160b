"""Tune one model with TVM's MetaSchedule and keep what comes out, to compare our tuner with.

    .venv-tvm/bin/python benchmarks/metaschedule.py FOLDER --trials 64 --threads 2

FOLDER holds `model.onnx` and `inputs.npz` as benchmarks/kernels.py writes them. The compiled
program goes to FOLDER/metaschedule.so, where the engine `tvm-tuned` finds it. The last line printed
is JSON: the seconds that tuning and compiling took. Constant operands may be laid out as the
schedule wants.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax import transform
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule as ms

# Seconds for building and for running a candidate; a worker loads all of TVM first.
BUILDING, RUNNING = 180.0, 60.0


def tuned_library(folder: Path, trials: int, threads: int, seed: int) -> float:
    """Tune, compile and export; the seconds it took."""
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})
    with np.load(folder / "inputs.npz") as arrays:
        shapes = {name: list(arrays[name].shape) for name in arrays.files}
    start = time.perf_counter()
    module = from_onnx(onnx.load(str(folder / "model.onnx")), shapes)
    with target, tempfile.TemporaryDirectory() as work:
        prepared = tvm.transform.Sequential(
            [
                transform.DecomposeOpsForInference(),
                transform.CanonicalizeBindings(),
                relax.get_pipeline("zero"),
                transform.AttachAttrLayoutFreeBuffers(),
            ]
        )(module)
        ms.relax_integration.tune_relax(
            prepared,
            {},
            target,
            work,
            max_trials_global=trials,
            builder=ms.builder.LocalBuilder(max_workers=threads, timeout_sec=BUILDING),
            runner=ms.runner.LocalRunner(timeout_sec=RUNNING),
            seed=seed,
        )
        tuned = tvm.transform.Sequential(
            [
                transform.MetaScheduleApplyDatabase(work),
                transform.SplitLayoutRewritePreproc(),
                transform.LiftTransformParams(),
                transform.FoldConstant(),
            ]
        )(prepared)
        program = tvm.compile(tuned, target)
    program.export_library(str(folder / "metaschedule.so"))
    return time.perf_counter() - start


def main() -> None:
    """Tune the model in one folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    seconds = tuned_library(a.folder, a.trials, a.threads, a.seed)
    print(json.dumps({"trials": a.trials, "seconds": round(seconds, 2)}))


if __name__ == "__main__":
    main()
