"""What a call costs: a model so small that the call is most of it, from Python and from C.

    python -m benchmarks.call_cost [--rounds 40] [--threads 1]

The model is two layers of 64 units. From Python it is compared with onnxruntime, where that is
installed, in alternating rounds; from C, where there is a C compiler, through the exported library.
Figures are the least over the rounds, in microseconds: of the clock, and of the processor's time,
which other processes disturb less.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

TIMES = 500

C_PROGRAM = """
#include <stdio.h>
#include <time.h>
#include "libmlp.h"

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

int main(void) {
  static float x[64], y[64];
  const void* inputs[] = {x};
  void* outputs[] = {y};
  double wall = 1e9, cpu = 1e9;
  mlp_set_threads(THREADS);
  for (int round = 0; round < ROUNDS; round++) {
    double start = now(CLOCK_MONOTONIC), used = now(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < TIMES; i++)
      if (mlp_run(inputs, outputs, 0)) return 1;
    used = (now(CLOCK_THREAD_CPUTIME_ID) - used) / TIMES;
    start = (now(CLOCK_MONOTONIC) - start) / TIMES;
    if (start < wall) wall = start;
    if (used < cpu) cpu = used;
  }
  printf("%f %f\\n", wall, cpu);
  return 0;
}
"""


def make_model(batch: int | str) -> onnx.ModelProto:
    """Two layers of 64 units."""
    rng = np.random.default_rng(0)
    weights = {f"w{i}": rng.standard_normal((64, 64), np.float32) / 8 for i in (1, 2)}
    weights |= {f"b{i}": rng.standard_normal(64, np.float32) for i in (1, 2)}
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, 64]) for n in "xy"]
    constants = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "mlp", ports[:1], ports[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model


def measure(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """The least microseconds a call, of the clock and of the processor, in alternating rounds."""
    best = {name: (float("inf"), float("inf")) for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            wall, cpu = time.perf_counter(), time.thread_time()
            for _ in range(TIMES):
                call()
            cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
            best[name] = tuple(  # type: ignore[assignment]
                min(old, new / TIMES * 1e6)
                for old, new in zip(best[name], (wall, cpu), strict=True)
            )
    return best


def python_calls(model: onnx.ModelProto, threads: int) -> dict[str, Callable[[], object]]:
    """The ways to call the model from Python."""
    x = np.random.default_rng(1).random((1, 64), np.float32)
    ours = tw.compile(model, threads=threads)
    calls: dict[str, Callable[[], object]] = {
        "tilewright model(x)": lambda: ours(x),
        "tilewright model(x=x)": lambda: ours(x=x),
        "tilewright run({})": lambda: ours.run({"x": x}),
    }
    if importlib.util.find_spec("onnxruntime") is not None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        np.testing.assert_allclose(ours(x), session.run(None, {"x": x})[0], atol=1e-4)
        calls["onnxruntime run({})"] = lambda: session.run(None, {"x": x})
    return calls


def from_c(model: onnx.ModelProto, threads: int, rounds: int) -> tuple[float, float] | None:
    """The same for the exported library, called from C; None without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tw.compile(model).export_library(folder / "libmlp.so")
        (folder / "main.c").write_text(C_PROGRAM)
        sizes = [f"-DTHREADS={threads}", f"-DROUNDS={rounds}", f"-DTIMES={TIMES}"]
        command = [compiler, "-O2", *sizes, "main.c", "-o", "main", "-L.", "-lmlp", "-Wl,-rpath,."]
        subprocess.run(command, cwd=folder, check=True)
        done = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True)
    wall, cpu = map(float, done.stdout.split())
    return wall, cpu


def main() -> None:
    """Print one line a way to call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for batch in (1, "N"):
        model = make_model(batch)
        found = measure(python_calls(model, options.threads), options.rounds)
        if isinstance(batch, int):
            native = from_c(model, options.threads, options.rounds)
            found |= {} if native is None else {"tilewright from C": native}
        for name, (wall, cpu) in found.items():
            print(f"batch {batch}  {name:24} {wall:7.2f} us  (processor {cpu:.2f})")


if __name__ == "__main__":
    main()
