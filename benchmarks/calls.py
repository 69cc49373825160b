"""What a call costs: a two-layer MLP of 64 units at batch 1, from Python and from C.

    python benchmarks/calls.py [--json calls.json]

From C, the exported library is called by a small program that is written and compiled here, where
there is a C compiler; from Python, the same model by ours, ONNX Runtime and OpenVINO as installed.
All run on one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from engines import ENGINES, QUICK
from kernels import CACHE, KERNELS, prepare

import tilewright as tw
from tilewright.bench.engines import EngineJob
from tilewright.bench.worker import timed_runs

NAME = "mlp_1x64x64"
SECONDS = 1.0
REPEATS, CALLS = 50, 2000

# Prints the microseconds of a call, the mean of many, once a repeat.
PROGRAM = """
#include <stdio.h>
#include <time.h>
#include "libmlp.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

int main(void) {
    static float x[%(inputs)d], y[%(outputs)d];
    const void *inputs[] = {x};
    void *outputs[] = {y};
    for (int i = 0; i < %(inputs)d; i++) x[i] = (float)i / %(inputs)d;
    mlp_set_threads(1);
    for (int repeat = 0; repeat < %(repeats)d; repeat++) {
        double start = now();
        for (int i = 0; i < %(calls)d; i++)
            if (mlp_run(inputs, outputs, 0)) return 1;
        printf("%%.4f\\n", (now() - start) / %(calls)d);
    }
    return 0;
}
"""


def row(how: str, microseconds: list[float]) -> dict[str, Any]:
    """One line of the table."""
    return {
        "how": how,
        "min_us": min(microseconds),
        "median_us": statistics.median(microseconds),
        "calls": len(microseconds),
    }


def from_python(folder: Path) -> Iterator[dict[str, Any]]:
    """Each engine as its users call it."""
    inputs = dict(np.load(folder / "inputs.npz"))
    for name in QUICK:
        if not ENGINES[name].installed:
            continue
        call = ENGINES[name].load(EngineJob(folder / "model.onnx", inputs, 1)).call
        timed_runs(call, SECONDS / 4)
        yield row(f"{name} from Python", [ms * 1e3 for ms in timed_runs(call, SECONDS)])
    with tw.compile(str(folder / "model.onnx"), threads=1) as model:
        direct = partial(model, inputs["x"])
        yield row("tilewright, model(x)", [ms * 1e3 for ms in timed_runs(direct, SECONDS)])


def from_c(folder: Path) -> Iterator[dict[str, Any]]:
    """The exported library, called by a program in C; nothing without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler: calls from C are left out")
        return
    with tempfile.TemporaryDirectory() as here:
        with tw.compile(str(folder / "model.onnx")) as model:
            library = model.export_library(Path(here, "libmlp.so"))
            (taken,), (given,) = model.inputs, model.outputs
        sizes = {"inputs": math.prod(taken.shape), "outputs": math.prod(given.shape)}
        text = PROGRAM % {**sizes, "repeats": REPEATS, "calls": CALLS}
        source, program = Path(here, "calls.c"), Path(here, "calls")
        source.write_text(text)
        flags = ["-O2", f"-I{here}", "-o", str(program), str(source), str(library)]
        subprocess.run([compiler, *flags, f"-Wl,-rpath,{here}"], check=True)
        done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    yield row("tilewright from C", [float(line) for line in done.stdout.split()])


def main() -> None:
    """Measure, print, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    prepare(KERNELS[NAME], CACHE / "kernels")
    rows = []
    for one in (*from_c(CACHE / "kernels" / NAME), *from_python(CACHE / "kernels" / NAME)):
        print(f"{one['how']:28} {one['min_us']:8.2f} us (median {one['median_us']:.2f})")
        rows.append(one)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps({"results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
