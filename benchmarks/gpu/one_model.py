"""One model of the zoo at one batch on a GPU: whether it is right, and how fast, beside its peers.

    python benchmarks/gpu/one_model.py resnet50 1 --work DIR --json figures.json
        [--precisions fp16,f32] [--engines ours,eager,inductor,jax]

`models.py` starts many of these at once: they compile side by side, and whatever runs on the GPU,
by us or by a peer that tries what it compiles, runs in one process after another, with a lock: the
GPU gives several of them its time in turns. Figures are written as soon as they are known.

Torch and ours are replayed as one captured graph, the inputs on the GPU already; the figure is the
median between two events, `call_ms` that of calls without a graph. JAX's is that of one among many
calls under way. `compile_s` is what it takes from the model to its first results, without waiting
for the lock. Results are compared with the module's in f64; those of a model that is an ONNX
file with ONNX Runtime's in f32.
"""

from __future__ import annotations

import argparse
import copy
import fcntl
import json
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import onnx
import torch
from onnx import numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from inputs import Numbers, narrowed
from modules import ARCHITECTURES, arguments, fold_norms
from zoo import DEFAULT_OUT, MODELS, Model, export, run_onnxruntime

from tilewright.core.atomic_write import atomic_write
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.runtime.cuda.executable import CudaExecutable

# How many examples a batch counts, where that is not one.
EXAMPLES = {"dlrm": 128}
# Weights that are not in the zoo's wheel there: random ones take as long.
RANDOM = {"minilm": "minilm_random"}
# Replays that are timed: as many as take so many milliseconds, within bounds.
WARM, FEWEST, MOST, MILLISECONDS = 5, 10, 50, 300.0
UNDER_WAY = 20
SLOWEST = 6
# How far what compiles stands behind what is timed.
BEHIND = 10
TYPES = {"f32": torch.float32, "fp16": torch.float16}

Figures = dict[str, Any]
Call = Callable[[], Any]


def of_batch(name: str, batch: int) -> Model:
    """A model of the zoo at a batch."""
    model = replace(MODELS[name], batch=EXAMPLES.get(name, 1) * batch, symbols=())
    return replace(model, build=ARCHITECTURES[RANDOM[name]]) if name in RANDOM else model


class Subject:
    """A model at a batch, and what is made of it once."""

    def __init__(self, name: str, batch: int, folder: Path) -> None:
        self.name, self.batch, self.folder = name, batch, folder
        self.model = of_batch(name, batch)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other process times or tries anything on the GPU; before those that compile."""
        with (self.folder / "gpu.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            behind = os.getpriority(os.PRIO_PROCESS, 0)
            with suppress(PermissionError):
                os.setpriority(os.PRIO_PROCESS, 0, 0)
            try:
                yield
                torch.cuda.synchronize()
            finally:
                os.setpriority(os.PRIO_PROCESS, 0, behind)

    @cached_property
    def module(self) -> torch.nn.Module | None:
        """The module, on the processor, if there is one."""
        return self.model.build() if self.model.build else None

    @cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        """The inputs."""
        return self.model.inputs()

    @cached_property
    def path(self) -> Path:
        """The ONNX file in f32: exported, unless it is there or the model is one."""
        if self.module is None:
            kept = DEFAULT_OUT / self.name / "model.onnx"
            assert self.model.file is not None
            return kept if kept.exists() else self.model.file()
        return self._exported(self.module, np.float32)

    @cached_property
    def half_path(self) -> Path:
        """The ONNX file of the module in f16, as other engines have it: inputs and results too.

        Batch norms are folded before, as the exporter would fold them in f16.
        """
        assert self.module is not None
        folded = copy.deepcopy(self.module)
        fold_norms(folded)
        return self._exported(folded.half(), np.float16)

    def _exported(self, module: torch.nn.Module, numbers: Numbers) -> Path:
        path = self.folder / f"{self.name}-{self.batch}-{np.dtype(numbers).name}.onnx"
        if not path.exists():
            fresh = path.with_suffix(".fresh")
            export(self.model, module, fresh, numbers)
            fresh.replace(path)
        return path

    @cached_property
    def dims(self) -> dict[str, int]:
        """The file's symbolic sizes; those without a name are called by input and place."""
        known = {}
        for port in onnx.load(str(self.path)).graph.input:
            shape = port.type.tensor_type.shape.dim
            sizes = self.inputs[port.name].shape
            for place, (dim, size) in enumerate(zip(shape, sizes, strict=True)):
                if not dim.dim_value:
                    known[dim.dim_param or f"{port.name}_{place}"] = size
        return known

    @cached_property
    def right(self) -> dict[str, torch.Tensor]:
        """The results that all are compared with; in f64 on the GPU they are made with its lock."""
        if self.module is None:
            found = run_onnxruntime(self.path, self.inputs)
            return {n: torch.from_numpy(a).cuda().double() for n, a in found.items()}
        module, given = self.on_gpu(torch.float64)
        with torch.inference_mode():
            return named(self.module, module(**given))

    @property
    def rounding(self) -> float:
        """What it costs a model that is an ONNX file if its weights alone are rounded to f16."""
        model = onnx.load(str(self.path))
        held = [a.t for n in model.graph.node for a in n.attribute if a.name == "value"]
        for weight in (*model.graph.initializer, *held):
            if weight.data_type == onnx.TensorProto.FLOAT:
                rounded = numpy_helper.to_array(weight).astype(np.float16).astype(np.float32)
                weight.CopyFrom(numpy_helper.from_array(rounded, weight.name))
        path = self.folder / f"{self.name}-rounded.onnx"
        onnx.save(model, str(path))
        return self.error(run_onnxruntime(path, self.inputs))

    def on_gpu(self, dtype: torch.dtype) -> tuple[torch.nn.Module, dict[str, Any]]:
        """The module and its arguments on the GPU, numbers of f32 in another type."""
        module = copy.deepcopy(self.module).to(dtype).cuda()
        return module, {k: moved(v, dtype) for k, v in arguments(self.inputs).items()}

    def error(self, found: Mapping[str, Any]) -> float:
        """The greatest difference of all results, relative to the largest of each that is right."""
        return max(difference(found[name], want) for name, want in self.right.items())


def difference(found: Any, want: torch.Tensor) -> float:
    """The largest difference, relative to the largest expected magnitude; compared on the GPU."""
    got = torch.as_tensor(found).cuda().double()
    if got.shape != want.shape:
        return float("inf")
    if not want.numel():
        return 0.0
    return float((got - want).abs().max() / want.abs().max().clamp(min=1e-30))


def named(module: torch.nn.Module, result: Any) -> dict[str, torch.Tensor]:
    """A module's results by name."""
    results = result if isinstance(result, tuple) else (result,)
    return dict(zip(module.outputs, results, strict=True))


def moved(value: Any, dtype: torch.dtype) -> Any:
    """An argument of a module on the GPU, numbers of f32 in another type."""
    if isinstance(value, list):
        return [moved(v, dtype) for v in value]
    return value.to(dtype).cuda() if value.dtype == torch.float32 else value.cuda()


def ours(subject: Subject, precision: str) -> Figures:
    """Compile, check and time by this compiler."""
    halves = precision == "fp16" and subject.module is not None
    path, dims = subject.half_path if halves else subject.path, subject.dims
    inputs = {n: narrowed(x, np.float16) if halves else x for n, x in subject.inputs.items()}
    start = time.perf_counter()
    options = {"dims": dims, "precision": precision}
    container = compile_container(path, make_options(target="cuda", cache=False, **options))
    with CudaExecutable(container) as executable:
        executable.check()  # the driver translates the code, by the processor
        seconds = time.perf_counter() - start
        args = [inputs[port.name] for port in executable.inputs]
        with subject.alone():
            start = time.perf_counter()
            found = executable.run(inputs)
            seconds += time.perf_counter() - start
            first = statistics.median(executable.latency(*args, runs=WARM))
            times = executable.latency(*args, runs=replays(first))
            rows = sorted(executable.profile(*args, runs=3).rows, key=lambda r: -r.median)
            error = subject.error(found)
    rounds = subject.module is None and precision != "f32"
    return {
        "ms": statistics.median(times),
        "compile_s": round(seconds, 2),
        "error": error,
        **({"rounding": subject.rounding} if rounds else {}),
        "kernels": len(rows),
        "slowest": [[r.name, r.calls, round(r.median / 1e6, 4)] for r in rows[:SLOWEST]],
    }


def eager(subject: Subject, precision: str) -> Figures:
    """Check and time the module by torch."""
    with torch.inference_mode(), subject.alone():
        module, given = subject.on_gpu(TYPES[precision])
        return timed(subject, lambda: module(**given))


def inductor(subject: Subject, precision: str) -> Figures:
    """Compile, check and time the module by torch's compiler."""
    from torch._inductor.compile_fx import compile_fx

    with subject.alone():
        module, given = subject.on_gpu(TYPES[precision])
    with ExitStack() as held, torch.inference_mode():
        begin = time.perf_counter()
        waited: list[float] = []

        def compiled(graph: torch.fx.GraphModule, examples: list[torch.Tensor]) -> Call:
            call = compile_fx(graph, examples)
            if not waited:  # what follows is tried and timed on the GPU
                compiled_at = time.perf_counter()
                held.enter_context(subject.alone())
                waited.append(time.perf_counter() - compiled_at)
            return call

        call = torch.compile(module, backend=compiled)
        call(**given)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin - sum(waited)
        figures = timed(subject, lambda: call(**given))
    return {"compile_s": round(seconds, 2), **figures}


def timed(subject: Subject, call: Call) -> Figures:
    """Check and time what torch computes."""
    assert subject.module is not None
    found = named(subject.module, call())
    replayed = event_times(captured(call).replay)
    return {"ms": replayed, "call_ms": event_times(call), "error": subject.error(found)}


def captured(call: Call) -> torch.cuda.CUDAGraph:
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


def replays(milliseconds: float) -> int:
    """How often something that takes so long is timed."""
    return max(FEWEST, min(MOST, int(MILLISECONDS / max(milliseconds, 1e-3))))


def event_times(call: Call) -> float:
    """The median milliseconds of what `call` gives the GPU to do, between two events."""

    def once() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    first = statistics.median(once() for _ in range(WARM))
    return statistics.median(once() for _ in range(replays(first)))


def jax_peer(subject: Subject, precision: str) -> Figures:
    """Compile, check and time the ONNX model's operators, written in `jnp`, by XLA."""
    import jax
    from jax_model import jax_model, jax_weights, settings_of

    jax.config.update("jax_default_matmul_precision", "highest")
    names = [output.name for output in onnx.load(str(subject.path)).graph.output]
    numbers = np.float32 if precision == "f32" else np.float16
    # Weights are arguments, or they would be constants of the program that XLA compiles.
    arrays = jax_weights(subject.path, numbers)
    arrays |= {name: narrowed(array, numbers) for name, array in subject.inputs.items()}
    begin = time.perf_counter()
    model = jax_model(subject.path, numbers, settings_of(subject.inputs))
    lowered = jax.jit(model).lower(arrays)
    spent = time.perf_counter() - begin
    with subject.alone():  # XLA tries what it compiles on the GPU
        begin = time.perf_counter()
        function = lowered.compile()
        spent += time.perf_counter() - begin
        arrays = jax.device_put(arrays)
        results = jax.block_until_ready(function(arrays))
        milliseconds = many_calls(lambda: function(arrays), jax.block_until_ready)
        found = {n: np.asarray(r) for n, r in zip(names, results, strict=True)}
        error = subject.error(found)
    jax.clear_caches()
    return {"ms": milliseconds, "compile_s": round(spent, 2), "error": error}


def many_calls(call: Call, wait: Callable[[Any], Any]) -> float:
    """The median milliseconds of one call among many under way."""
    times = []
    for _ in range(WARM):
        begin = time.perf_counter()
        wait([call() for _ in range(UNDER_WAY)])
        times.append((time.perf_counter() - begin) / UNDER_WAY * 1e3)
    return statistics.median(times)


ENGINES: dict[str, Callable[[Subject, str], Figures]] = {
    "ours": ours,
    "eager": eager,
    "inductor": inductor,
    "jax": jax_peer,
}
# Those that need a module.
TORCH = ("eager", "inductor")


def measure(engine: str, subject: Subject, precision: str) -> Figures:
    """The figures of one engine, or what went wrong."""
    try:
        return ENGINES[engine](subject, precision)
    except Exception as error:  # one that fails must not hide the others
        where = traceback.format_exc().strip().splitlines()[-7:]
        return {"failure": f"{type(error).__name__}: {error}"[:500], "where": where}
    finally:
        torch._dynamo.reset()
        torch.cuda.empty_cache()


def main() -> None:
    """Measure what was asked for; write what is known after each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("batch", type=int)
    parser.add_argument("--precisions", default="fp16,f32")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    os.nice(BEHIND)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    subject = Subject(given.name, given.batch, given.work)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(dir=given.json.parent)
    if subject.module is None:
        print("from ONNX Runtime:", *subject.right)  # by the processor, so without the lock
    rows: dict[str, Figures] = {}
    for precision in given.precisions.split(","):
        row = rows.setdefault(f"{given.name} {given.batch} {precision}", {})
        for engine in given.engines.split(","):
            if engine in TORCH and subject.module is None:
                row[engine] = {"absent": "torch has no module of it"}
            else:
                row[engine] = measure(engine, subject, precision)
            atomic_write(given.json, lambda path: path.write_text(json.dumps(rows)))


if __name__ == "__main__":
    main()
