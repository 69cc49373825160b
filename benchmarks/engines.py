"""The engines of the latency benchmark, and the worker process that runs one of them.

An engine is one line of `ENGINES`: the package it needs and a function that loads a model and
returns a `Session`. All work in f32 with the same number of threads. `latency.py` starts

    python benchmarks/engines.py ENGINE FOLDER DATA THREADS

for each, FOLDER holding `model.onnx` and DATA `inputs.npz` and `expected.npz`, and talks to it in
lines of JSON: the worker first says how loading went, then answers every line `SECONDS` with the
milliseconds of each run it made in that time. Without arguments it prints which are installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Session:
    """A loaded model with its inputs in place.

    `call` runs it once and returns when it is done; `fetch` makes arrays of what it returned, by
    name or in the model's order. `flops` are those of a run, where the engine knows them.
    """

    call: Callable[[], Any]
    fetch: Callable[[Any], Arrays | Sequence[Any]]
    flops: float | None = None


Load = Callable[[Path, Arrays, int], Session]


def tilewright(path: Path, inputs: Arrays, threads: int) -> Session:
    """Tilewright, as a user calls it: arrays in, arrays out."""
    import tilewright as tw

    model = tw.compile(str(path), threads=threads)
    counts = [kernel.get("flops") for kernel in model.manifest["kernels"]]
    flops = None if None in counts else float(sum(counts))
    return Session(lambda: model.run(inputs), dict, flops)


def onnxruntime(path: Path, inputs: Arrays, threads: int) -> Session:
    """ONNX Runtime's CPU provider, all its graph optimisations on (its default)."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return Session(lambda: session.run(None, inputs), list)


def openvino(path: Path, inputs: Arrays, threads: int) -> Session:
    """OpenVINO's CPU plugin, kept from the 16-bit floats it would choose by itself."""
    import openvino as ov

    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    core = ov.Core()
    compiled = core.compile_model(core.read_model(str(path)), "CPU", settings)
    request = compiled.create_infer_request()
    tensors = {name: ov.Tensor(value) for name, value in inputs.items()}
    for name, tensor in tensors.items():
        request.set_tensor(name, tensor)

    def fetch(_: Any) -> list[np.ndarray]:
        assert tensors  # a request does not own its tensors: they must live as long as it
        return [np.array(request.get_tensor(port).data) for port in compiled.outputs]

    return Session(request.infer, fetch)


def torch_session(path: Path, inputs: Arrays, threads: int, **how: Any) -> Session:
    """The model's torch module, through `torch.compile` where `how` says so."""
    import torch

    torch.set_num_threads(threads)
    module, keywords = torch_module(path, inputs)
    function = torch.compile(module, **how) if how else module

    def call() -> Any:
        with torch.no_grad():
            return function(**keywords)

    def fetch(result: Any) -> list[np.ndarray]:
        return [t.numpy() for t in (result if isinstance(result, tuple) else (result,))]

    return Session(call, fetch)


def torch_module(path: Path, inputs: Arrays) -> tuple[Any, dict[str, Any]]:
    """The torch module that a model was exported from, and its keyword arguments."""
    if path.parent.parent.name == "kernels":
        import torch
        from operators import torch_kernel

        return torch_kernel(path), {n: torch.from_numpy(value) for n, value in inputs.items()}
    from modules import arguments
    from zoo import MODELS

    build = MODELS[path.parent.name].build
    if build is None:
        raise NotImplementedError("the model is an ONNX file, torch has no module of it")
    return build(), arguments(inputs)


def inductor(path: Path, inputs: Arrays, threads: int) -> Session:
    """torch.compile with weights as constants, packed in advance: torch's advice for inference."""
    import torch._inductor.config as config

    config.freezing = True
    return torch_session(path, inputs, threads, backend="inductor")


def jax(path: Path, inputs: Arrays, threads: int) -> Session:
    """XLA on the CPU; kernels only, JAX having no module of the models."""
    if path.parent.parent.name != "kernels":
        raise NotImplementedError("JAX has no module of the model, it runs the kernels only")
    # XLA has no switch for its threads: it takes one a processor it may run on.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import jax
    from operators import jax_kernel

    function, arrays = jax.jit(jax_kernel(path)), jax.device_put(dict(inputs))
    return Session(lambda: jax.block_until_ready(function(arrays)), lambda result: [result])


def iree(path: Path, inputs: Arrays, threads: int) -> Session:
    """IREE through its ONNX importer, compiled for this machine at its highest level."""
    import iree.runtime as rt

    rt.flags.parse_flags(f"--task_topology_max_group_count={threads}")
    with tempfile.TemporaryDirectory() as folder:
        imported, built = Path(folder, "model.mlir"), Path(folder, "model.vmfb")
        tool("iree-import-onnx", path, "-o", imported, "--opset-version=20")
        tool("iree-compile", imported, "-o", built, *IREE_FLAGS)
        code = built.read_bytes()
    config = rt.Config("local-task")
    module = rt.VmModule.copy_buffer(config.vm_instance, code)
    hal = rt.create_hal_module(config.vm_instance, config.device)
    context = rt.SystemContext(vm_modules=[hal, module], config=config)
    names = [n for n in module.function_names if not n.startswith("__") and "$" not in n]
    function = getattr(context.modules, module.name)[names[0]]
    arrays = [rt.asdevicearray(config.device, value) for value in inputs.values()]
    several = (tuple, list)
    return Session(
        lambda: function(*arrays),
        lambda result: result if isinstance(result, several) else [result],
    )


IREE_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
    "--iree-llvmcpu-stack-allocation-limit=131072",
    # Convolutions as ONNX has them, channels first, stay scalar loops; this turns them.
    "--iree-preprocessing-pass-pipeline=builtin.module(iree-preprocessing-transpose-convolution-pipeline)",
)


ERROR_LINE = re.compile(r"[\w.]*(Error|Exception|Failure)\b")


def reason(text: str) -> str:
    """The line of a program's last words that says why it ended: an error's first, or the last."""
    lines = [line for line in text.splitlines() if line.strip()]
    named = [line for line in lines if ERROR_LINE.match(line)]
    return (named or lines or ["no message"])[-1]


def tool(name: str, *arguments: str | Path) -> None:
    """Run a program of this environment; its first error line is raised."""
    command = [str(Path(sys.executable).parent / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        raise RuntimeError(f"{name}: {(errors or lines or ['no message'])[0][:200]}")


def tvm(path: Path, inputs: Arrays, threads: int) -> Session:
    """TVM's Relax without tuning: its loops run as its importer writes them."""
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})
    program = tvm.compile(from_onnx(onnx.load(str(path))), target)
    function = relax.VirtualMachine(program, tvm.cpu())["main"]
    arrays = [tvm.runtime.tensor(value) for value in inputs.values()]

    def fetch(result: Any) -> list[np.ndarray]:
        tensors = [result] if hasattr(result, "numpy") else result
        return [tensor.numpy() for tensor in tensors]

    return Session(lambda: function(*arrays), fetch)


# Name -> the package it needs and how to load a model with it.
ENGINES: dict[str, tuple[str, Load]] = {
    "tilewright": ("tilewright", tilewright),
    "onnxruntime": ("onnxruntime", onnxruntime),
    "openvino": ("openvino", openvino),
    "inductor": ("torch", inductor),
    "torch": ("torch", torch_session),
    "jax": ("jax", jax),
    "iree": ("iree", iree),
    "tvm-untuned": ("tvm", tvm),
}


ON_REQUEST = ("tvm-untuned",)  # one run of a transformer takes it the better part of a minute


def installed() -> list[str]:
    """The engines whose package is there."""
    return [
        name
        for name, (package, _) in ENGINES.items()
        if importlib.util.find_spec(package) is not None
    ]


def named(outputs: Arrays | Sequence[Any], expected: Arrays) -> Arrays:
    """Outputs by name; those given in order take the names of the expected ones."""
    if isinstance(outputs, Mapping):
        return outputs
    arrays = [np.asarray(output) for output in outputs]
    return dict(zip(expected, arrays, strict=True))


def relative_error(got: Arrays, expected: Arrays) -> float:
    """The largest difference of any output, relative to that output's largest magnitude.

    A NaN or infinity on one side only is an infinite error.
    """
    worst = 0.0
    for name, want in expected.items():
        value = np.asarray(got[name])
        if value.shape != want.shape:
            raise ValueError(f"output {name} has shape {value.shape}, expected {want.shape}")
        value, want = value.astype(np.float64), want.astype(np.float64)
        both = np.isfinite(value) & np.isfinite(want)
        if not np.array_equal(value[~both], want[~both], equal_nan=True):
            return float("inf")
        if both.any():
            scale = max(float(np.abs(want[both]).max()), np.finfo(np.float32).tiny)
            worst = max(worst, float(np.abs(value - want)[both].max()) / scale)
    return worst


def peak_memory_mb() -> float:
    """Most memory this process ever had resident; rusage would count the parent's too."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM line")


def timed_runs(call: Callable[[], Any], seconds: float) -> list[float]:
    """Milliseconds of each run, as many as fit into `seconds`, one at least."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def serve(name: str, folder: Path, data: Path, threads: int, answers: IO[str]) -> None:
    """Load the model, report, then time runs as asked until the input ends."""

    def answer(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=answers, flush=True)

    inputs = dict(np.load(data / "inputs.npz"))
    expected = dict(np.load(data / "expected.npz"))
    package, load = ENGINES[name]
    importlib.import_module(package)  # what importing costs is not the model's
    start = time.perf_counter()
    session = load(folder / "model.onnx", inputs, threads)
    loaded = time.perf_counter()
    result = session.call()
    first = time.perf_counter()
    error = relative_error(named(session.fetch(result), expected), expected)
    del result
    times = {"load_s": loaded - start, "first_ms": (first - loaded) * 1e3}
    answer({**times, "error": error, "flops": session.flops})
    for line in sys.stdin:
        answer({"ms": timed_runs(session.call, float(line)), "peak_mb": peak_memory_mb()})


def main() -> None:
    """Run one worker, its answers on what was standard output: libraries may print, not there."""
    if len(sys.argv) == 1:
        print("\n".join(installed()))
        return
    name, folder, data, threads = sys.argv[1:]
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        serve(name, Path(folder), Path(data), int(threads), answers)


if __name__ == "__main__":
    main()
