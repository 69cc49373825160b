"""Whole models on a GPU, in f32 and fp16, beside torch, eager and compiled by Inductor, and JAX.

    python benchmarks/gpu/models.py [resnet50 ...] [--batches 1,32] [--precisions f32,fp16]
                                    [--peers eager,inductor,jax] [--json models.json]

The modules of the zoo are exported here, at each batch (`--work DIR` keeps what is made). What
needs no GPU, and what peers compile, is made beforehand by all processors at once, but for `--cold`
models: there a peer's `first_s` is what it takes to compile with the processors to itself. Torch
and ours are replayed as one captured graph, the inputs on the GPU already; the figure is the median
between two events, `call_ms` that of calls without a graph. JAX's is that of one among many calls
under way. Results are compared with the module's in f64 on the processor.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from modules import arguments
from zoo import MODELS, Model, export, precise_answers, relative_error

from tilewright.driver.compile import compile_container
from tilewright.runtime.container import read_container, write_container
from tilewright.runtime.cuda.executable import CudaExecutable

NAMES = (
    "resnet50 bert_base mobilenet_v2 gpt2 gpt2_decode vit_b16 convnext_t efficientnet_b0 lstm dlrm"
).split()
REPLAYS, WARM = 50, 5
SLOWEST = 6
WORKERS = 12
TORCH = {"f32": torch.float32, "fp16": torch.float16}

Figures = dict[str, Any]
Job = tuple[str, int, str, Path]
"""A model's name, its batch, the precision, and the folder of all that is made of models."""


def of_batch(name: str, batch: int) -> Model:
    """A model of the zoo at a batch; DLRM's is counted in 128 examples."""
    return replace(MODELS[name], batch=MODELS[name].batch * batch, symbols=())


def file_of(job: Job, ending: str) -> Path:
    """Where something made of a model is."""
    name, batch, precision, folder = job
    return folder / f"{name}-{batch}{'-' if precision else ''}{precision}.{ending}"


def prepared(name: str, batch: int, folder: Path) -> tuple[Model, Path]:
    """A model at a batch, and its ONNX file."""
    model, path = of_batch(name, batch), file_of((name, batch, "", folder), "onnx")
    if not path.exists():
        assert model.build is not None
        export(model, model.build(), path)
    return model, path


def prepare(job: tuple[str, int, tuple[str, ...], Path]) -> str:
    """Export a model, compile it for each precision, compute its answers; what went wrong."""
    name, batch, precisions, folder = job
    try:
        model, path = prepared(name, batch, folder)
        answers = file_of((name, batch, "", folder), "npz")
        if not answers.exists():
            right = precise_answers(model)
            assert right is not None
            np.savez(answers, **right)
        for precision in precisions:
            _compile((name, batch, precision, folder), path)
        return ""
    except Exception as error:  # one that fails must not hide the others
        return f"{name} {batch}: {type(error).__name__}: {error}"[:600]


def _compile(job: Job, path: Path) -> None:
    target = file_of(job, "tw")
    if target.exists():
        return
    start = time.perf_counter()
    given = {} if job[2] == "f32" else {"precision": job[2]}
    container = compile_container(path, target="cuda", cache=False, **given)
    seconds = time.perf_counter() - start
    write_container(target, container.manifest, container.objects, [(0, container.weights)])
    file_of(job, "seconds").write_text(str(seconds))


def right_answers(job: Job) -> dict[str, np.ndarray]:
    """The results in f64."""
    with np.load(file_of((job[0], job[1], "", job[3]), "npz")) as found:
        return dict(found)


def ours(job: Job) -> Figures:
    """Check and time a model by this compiler."""
    if not file_of(job, "tw").exists():
        prepare((job[0], job[1], (job[2],), job[3]))
    with CudaExecutable(read_container(file_of(job, "tw"))) as executable:
        inputs = of_batch(job[0], job[1]).inputs()
        found = executable.run(inputs)
        args = [inputs[port.name] for port in executable.inputs]
        times = executable.latency(*args, runs=REPLAYS)
        rows = sorted(executable.profile(*args, runs=3).rows, key=lambda r: -r.median)
    return {
        "ms": statistics.median(times),
        "compile_s": round(float(file_of(job, "seconds").read_text()), 2),
        "error": worst_error(found, right_answers(job)),
        "kernels": len(rows),
        "slowest": [[r.name, r.calls, round(r.median / 1e6, 4)] for r in rows[:SLOWEST]],
    }


def worst_error(found: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray]) -> float:
    """The greatest error of all results."""
    return max(relative_error(found[n].astype(np.float64), right[n]) for n in right)


def on_gpu(value: Any, dtype: torch.dtype) -> Any:
    """An argument of a module on the GPU, numbers of f32 in another type."""
    if isinstance(value, list):
        return [on_gpu(v, dtype) for v in value]
    return value.cuda().to(dtype) if value.dtype == torch.float32 else value.cuda()


def peer(job: Job, compiled: bool) -> Figures:
    """Check and time the module by torch."""
    model, dtype = of_batch(job[0], job[1]), TORCH[job[2]]
    assert model.build is not None
    module = model.build().cuda().to(dtype)
    given = {k: on_gpu(v, dtype) for k, v in arguments(model.inputs()).items()}
    start = time.perf_counter()
    call: Callable[..., Any] = torch.compile(module) if compiled else module
    with torch.inference_mode():
        result = call(**given)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        called = event_times(lambda: call(**given))
        replayed = event_times(captured(lambda: call(**given)).replay)
    tensors = result if isinstance(result, tuple) else (result,)
    found = {n: t.double().cpu().numpy() for n, t in zip(module.outputs, tensors, strict=True)}
    return {
        "ms": replayed,
        "call_ms": called,
        "first_s": round(seconds, 2),
        "error": worst_error(found, right_answers(job)),
    }


def captured(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """What `call` gives the GPU to do, as a graph."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def event_times(call: Callable[[], Any]) -> float:
    """The median milliseconds of what `call` gives the GPU to do, between two events."""
    times = []
    for _ in range(WARM + REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[WARM:])


def jax_peer(job: Job) -> Figures:
    """Check and time the ONNX model's operators, written in `jnp`, by XLA."""
    import jax
    import onnx
    from jax_operators import jax_model
    from onnx import numpy_helper

    jax.config.update("jax_default_matmul_precision", "highest")
    jax.config.update("jax_compilation_cache_dir", str(job[3] / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    path, dtype = file_of((job[0], job[1], "", job[3]), "onnx"), np.dtype(TORCH_TO_NUMPY[job[2]])
    graph = onnx.load(str(path)).graph
    # Weights are arguments, or they would be constants of the program that XLA compiles.
    given = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    given = {n: a for n, a in given.items() if a.dtype == np.float32}
    given |= of_batch(job[0], job[1]).inputs()
    arrays = {n: a.astype(dtype) if a.dtype == np.float32 else a for n, a in given.items()}
    start = time.perf_counter()
    function, arrays = jax.jit(jax_model(path)), jax.device_put(arrays)
    results = jax.block_until_ready(function(arrays))
    seconds = time.perf_counter() - start
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        jax.block_until_ready([function(arrays) for _ in range(20)])
        times.append((time.perf_counter() - begin) / 20 * 1e3)
    found = {o.name: np.asarray(r) for o, r in zip(graph.output, results, strict=True)}
    error = worst_error(found, right_answers(job))
    return {"ms": statistics.median(times), "first_s": round(seconds, 2), "error": error}


TORCH_TO_NUMPY = {"f32": "float32", "fp16": "float16"}
ENGINES: dict[str, Callable[[Job], Figures]] = {
    "ours": ours,
    "eager": lambda job: peer(job, compiled=False),
    "inductor": lambda job: peer(job, compiled=True),
    "jax": jax_peer,
}


def measure(engine: str, job: Job) -> Figures:
    """The figures of one engine, or what went wrong."""
    try:
        return ENGINES[engine](job)
    except Exception as error:  # one that fails must not hide the others
        where = traceback.format_exc().strip().splitlines()[-7:]
        return {"failure": f"{type(error).__name__}: {error}"[:500], "where": where}
    finally:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch._dynamo.reset()


def warm(given: tuple[str, Job]) -> None:
    """Let a peer compile a model, so that it finds it in its cache."""
    torch.set_num_threads(1)
    measure(*given)


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


def make_all(jobs: list[Job], peers: list[str], cold: list[str]) -> None:
    """Everything that needs no GPU to itself, by all processors at once."""
    start = time.perf_counter()
    precisions = tuple(dict.fromkeys(job[2] for job in jobs))
    models = dict.fromkeys((name, batch, precisions, folder) for name, batch, _, folder in jobs)
    compilers = [p for p in peers if p != "eager"]
    waiting = [(p, job) for job in jobs if job[0] not in cold for p in compilers]
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        for failure in pool.map(prepare, models):
            if failure:
                print(failure, flush=True)
        print(f"made after {time.perf_counter() - start:.0f} s", flush=True)
        list(pool.map(warm, waiting))
    print(f"peers have compiled after {time.perf_counter() - start:.0f} s", flush=True)


def main() -> None:
    """Measure what was asked for; print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--precisions", default="f32,fp16")
    parser.add_argument("--peers", default="eager,inductor")
    parser.add_argument("--cold", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", type=Path, default=None)
    given = parser.parse_args()
    peers = [p for p in given.peers.split(",") if p]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    folder = given.work or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    batches, precisions = map(int, given.batches.split(",")), given.precisions.split(",")
    sizes = [(name, batch) for batch in batches for name in given.names or NAMES]
    jobs: list[Job] = [(*size, p, folder) for size in sizes for p in precisions]
    make_all(jobs, peers, given.cold.split(","))
    rows = []
    for job in jobs:
        row: Figures = dict(zip(("model", "batch", "precision"), job, strict=False))
        row |= {engine: measure(engine, job) for engine in ("ours", *peers)}
        print(line(row, peers), flush=True)
        rows.append(row)
        if given.json:
            given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
