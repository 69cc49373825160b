"""Whole models on a GPU, in f32 and fp16, beside torch: eager, and compiled by Inductor.

    python benchmarks/gpu/models.py [resnet50 ...] [--batches 1,32] [--precisions f32,fp16]
                                    [--peers eager,inductor] [--json models.json]

The modules of the zoo are exported here, at each batch (`--onnx DIR` keeps the files). Every engine
is replayed as one captured graph, its inputs on the GPU already; the figure is the median between
two events. Results are compared with the module's in f64 on the processor.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from modules import arguments
from zoo import MODELS, Model, export, precise_answers, relative_error

from tilewright.driver.compile import compile_container
from tilewright.runtime.cuda.executable import CudaExecutable

NAMES = (
    "resnet50 bert_base mobilenet_v2 gpt2 gpt2_decode vit_b16 convnext_t efficientnet_b0 lstm dlrm"
).split()
REPLAYS, WARM = 50, 5
SLOWEST = 6
TORCH = {"f32": torch.float32, "fp16": torch.float16}

Figures = dict[str, Any]


def ours(path: Path, model: Model, right: Mapping[str, np.ndarray], precision: str) -> Figures:
    """Compile, check and time a model by this compiler."""
    start = time.perf_counter()
    given = {} if precision == "f32" else {"precision": precision}
    container = compile_container(path, target="cuda", cache=False, **given)
    seconds = time.perf_counter() - start
    with CudaExecutable(container) as executable:
        inputs = model.inputs()
        found = executable.run(inputs)
        args = [inputs[port.name] for port in executable.inputs]
        times = executable.latency(*args, runs=REPLAYS)
        rows = sorted(executable.profile(*args, runs=3).rows, key=lambda r: -r.median)
    return {
        "ms": statistics.median(times),
        "compile_s": round(seconds, 2),
        "error": max(relative_error(found[n].astype(np.float64), right[n]) for n in right),
        "kernels": len(rows),
        "slowest": [[r.name, r.calls, round(r.median / 1e6, 4)] for r in rows[:SLOWEST]],
    }


def on_gpu(value: Any, dtype: torch.dtype) -> Any:
    """An argument of a module on the GPU, numbers of f32 in another type."""
    if isinstance(value, list):
        return [on_gpu(v, dtype) for v in value]
    return value.cuda().to(dtype) if value.dtype == torch.float32 else value.cuda()


def peer(model: Model, right: Mapping[str, np.ndarray], precision: str, compiled: bool) -> Figures:
    """Check and time the module by torch; compiled or not, it is replayed as one graph."""
    dtype = TORCH[precision]
    assert model.build is not None
    module = model.build().cuda().to(dtype)
    given = {k: on_gpu(v, dtype) for k, v in arguments(model.inputs()).items()}
    start = time.perf_counter()
    call: Callable[..., Any] = torch.compile(module) if compiled else module
    with torch.inference_mode():
        result = call(**given)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        milliseconds = replayed(lambda: call(**given))
    tensors = result if isinstance(result, tuple) else (result,)
    found = {n: t.double().cpu().numpy() for n, t in zip(module.outputs, tensors, strict=True)}
    return {
        "ms": milliseconds,
        "compile_s": round(seconds, 2),
        "error": max(relative_error(found[n], right[n]) for n in right),
    }


def replayed(call: Callable[[], Any]) -> float:
    """The median milliseconds of a replay of what `call` gives the GPU to do."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    times = []
    for _ in range(WARM + REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[WARM:])


ENGINES: dict[str, Callable[..., Figures]] = {
    "ours": lambda path, model, right, kind: ours(path, model, right, kind),
    "eager": lambda path, model, right, kind: peer(model, right, kind, compiled=False),
    "inductor": lambda path, model, right, kind: peer(model, right, kind, compiled=True),
}


def measure(engine: str, *given: Any) -> Figures:
    """The figures of one engine, or what went wrong."""
    try:
        return ENGINES[engine](*given)
    except Exception as error:  # one that fails must not hide the others
        where = traceback.format_exc().strip().splitlines()[-7:]
        return {"failure": f"{type(error).__name__}: {error}"[:500], "where": where}
    finally:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch._dynamo.reset()


def line(row: Figures, peers: list[str]) -> str:
    """A row of the table."""
    cells = []
    for engine in ("ours", *peers):
        found = row[engine]
        cells.append(f"{found['ms']:9.4f}" if "ms" in found else f"{'failed':>9}")
    mine = row["ours"]
    others = [row[p]["ms"] for p in peers if "ms" in row[p]]
    rest = mine.get("failure", "")[:90]
    if "ms" in mine:
        ratio = f"{min(others) / mine['ms']:.2f}" if others else "-"
        rest = f"{ratio:>6} {mine['error']:8.1e} {mine['compile_s']:6.1f} s {mine['slowest'][:3]}"
    return f"{row['model']:16} {row['batch']:3} {row['precision']:5} {' '.join(cells)} {rest}"


def prepared(name: str, batch: int, folder: Path) -> tuple[Model, Path]:
    """A model of the zoo at a batch, and its ONNX file; DLRM's is counted in 128 examples."""
    model = MODELS[name]
    model = replace(model, batch=model.batch * batch, symbols=())
    path = folder / f"{name}-{batch}.onnx"
    if not path.exists():
        assert model.build is not None
        export(model, model.build(), path)
    return model, path


def main() -> None:
    """Measure what was asked for; print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--precisions", default="f32,fp16")
    parser.add_argument("--peers", default="eager,inductor")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--onnx", type=Path, default=None)
    given = parser.parse_args()
    peers = [p for p in given.peers.split(",") if p]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    folder = given.onnx or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in given.names or NAMES:
        for batch in map(int, given.batches.split(",")):
            model, path = prepared(name, batch, folder)
            right = precise_answers(model)
            for precision in given.precisions.split(","):
                row: Figures = {"model": name, "batch": batch, "precision": precision}
                row |= {e: measure(e, path, model, right, precision) for e in ("ours", *peers)}
                print(line(row, peers), flush=True)
                rows.append(row)
                if given.json:
                    given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
