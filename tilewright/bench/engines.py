"""The engines that read ONNX files: what each needs, and how it loads a model.

An engine is one line of `ENGINES`. `load` gives an `EngineSession` whose `call` is what is timed:
inputs are in place, nothing is converted. All work in f32 unless their name says otherwise. Only
the engine itself is imported, so that each can live in an environment of its own.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tilewright.driver.segmented.model import SegmentedModel
    from tilewright.runtime.model import CompiledModel

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class EngineJob:
    """What every engine is given: a model, its inputs, the values of symbolic sizes if fixed.

    `roofline` is that of the machine as plain data, for an engine that profiles its kernels.
    `tuned` is a file of records, `disable_passes` are names of graph passes, both for ours.
    """

    model: Path
    inputs: Arrays
    threads: int
    dims: Mapping[str, int] = field(default_factory=dict)
    roofline: Mapping[str, Any] | None = None
    tuned: str | None = None
    disable_passes: Sequence[str] = ()


@dataclass(frozen=True)
class EngineSession:
    """A loaded model with its inputs in place.

    `call` runs it once and returns when it is done; `fetch` makes arrays of what it returned, by
    name or in the model's order. `kernels` asks the engine for the time of each of its kernels,
    where it can tell.
    """

    call: Callable[[], Any]
    fetch: Callable[[Any], Arrays | Sequence[Any]]
    kernels: Callable[[], list[dict[str, Any]]] | None = None


Load = Callable[[EngineJob], EngineSession]


@dataclass(frozen=True)
class Engine:
    """The package an engine needs, how it loads a model, what to say about it.

    One that `keeps` what it compiled is started twice: the first process compiles, the second
    loads and is measured. One `on_request` takes part only where it is named.
    """

    package: str
    load: Load
    summary: str
    keeps: bool = False
    on_request: bool = False

    @property
    def installed(self) -> bool:
        """Whether the package is there."""
        return importlib.util.find_spec(self.package) is not None


def tilewright(job: EngineJob, **options: Any) -> EngineSession:
    """Tilewright as a user calls it: arrays in, arrays out."""
    import tilewright as tw
    from tilewright.runtime.cpu.executable import Executable
    from tilewright.runtime.roofline.roofline import Roofline

    path = str(job.model)
    model: CompiledModel | SegmentedModel
    if path.endswith(".tw"):
        model = tw.load(path)
        model.set_threads(job.threads)
    else:
        options |= {"threads": job.threads, "dims": job.dims, "tuned": job.tuned}
        model = tw.compile(path, disable_passes=tuple(job.disable_passes), **options)

    ordered = [job.inputs[port.name] for port in model.inputs]

    def kernels() -> list[dict[str, Any]]:
        roofline = None if job.roofline is None else Roofline.from_data(job.roofline)
        if not isinstance(model, Executable):  # the profile of a segmented model has no kernels
            return []
        profile = model.profile(*ordered, runs=5, roofline=roofline)
        rows: list[dict[str, Any]] = profile.data()["kernels"]
        return rows

    return EngineSession(lambda: model.run(job.inputs), dict, kernels)


def onnxruntime(job: EngineJob) -> EngineSession:
    """ONNX Runtime's CPU provider, all its graph optimisations on (its default)."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = job.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    for name, size in job.dims.items():
        options.add_free_dimension_override_by_name(name, size)
    session = ort.InferenceSession(str(job.model), options, providers=["CPUExecutionProvider"])
    inputs = dict(job.inputs)
    return EngineSession(lambda: session.run(None, inputs), list)


def openvino(job: EngineJob, **settings: str) -> EngineSession:
    """OpenVINO's CPU plugin for the least latency."""
    import openvino as ov

    core = ov.Core()
    model = core.read_model(str(job.model))
    if job.dims:  # the others are told the sizes as well
        model.reshape({name: list(value.shape) for name, value in job.inputs.items()})
    hints = {"INFERENCE_NUM_THREADS": job.threads, "PERFORMANCE_HINT": "LATENCY", **settings}
    request = core.compile_model(model, "CPU", hints).create_infer_request()
    tensors = {name: ov.Tensor(value) for name, value in job.inputs.items()}
    for name, tensor in tensors.items():
        request.set_tensor(name, tensor)

    def fetch(_: Any) -> list[np.ndarray]:
        assert tensors  # a request does not own its tensors: they must live as long as it
        return [np.array(tensor.data) for tensor in request.output_tensors]

    return EngineSession(request.infer, fetch)


IREE_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O3",
    "--iree-llvmcpu-stack-allocation-limit=131072",
    # Convolutions as ONNX has them, channels first, stay scalar loops; this transposes them.
    "--iree-preprocessing-pass-pipeline=builtin.module(iree-preprocessing-transpose-convolution-pipeline)",
)


def iree(job: EngineJob) -> EngineSession:
    """IREE through its ONNX importer, compiled for this machine at its highest level."""
    import iree.runtime as rt

    rt.flags.parse_flags(f"--task_topology_max_group_count={job.threads}")
    with tempfile.TemporaryDirectory() as folder:
        imported, built = Path(folder, "model.mlir"), Path(folder, "model.vmfb")
        _tool("iree-import-onnx", job.model, "-o", imported, "--opset-version=20")
        _tool("iree-compile", imported, "-o", built, *IREE_FLAGS)
        code = built.read_bytes()
    config = rt.Config("local-task")
    module = rt.VmModule.copy_buffer(config.vm_instance, code)
    hal = rt.create_hal_module(config.vm_instance, config.device)
    context = rt.SystemContext(vm_modules=[hal, module], config=config)
    names = [n for n in module.function_names if not n.startswith("__") and "$" not in n]
    function = getattr(context.modules, module.name)[names[0]]
    arrays = [rt.asdevicearray(config.device, value) for value in job.inputs.values()]
    several = (tuple, list)
    return EngineSession(
        lambda: function(*arrays),
        lambda result: result if isinstance(result, several) else [result],
    )


def _tool(name: str, *arguments: str | Path) -> None:
    """Run a program of this environment; its first error line is raised."""
    command = [str(Path(sys.executable).parent / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        raise RuntimeError(f"{name}: {(errors or lines or ['no message'])[0][:200]}")


def tvm(job: EngineJob) -> EngineSession:
    """TVM's Relax without tuning: its loops run as its importer writes them."""
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": job.threads})
    shapes = {name: list(value.shape) for name, value in job.inputs.items()}
    program = tvm.compile(from_onnx(onnx.load(str(job.model)), shapes), target)
    function = relax.VirtualMachine(program, tvm.cpu())["main"]
    arrays = [tvm.runtime.tensor(value) for value in job.inputs.values()]

    def fetch(result: Any) -> list[np.ndarray]:
        tensors = [result] if hasattr(result, "numpy") else result
        return [tensor.numpy() for tensor in tensors]

    return EngineSession(lambda: function(*arrays), fetch)


ENGINES: dict[str, Engine] = {
    "tilewright": Engine("tilewright", tilewright, "this compiler", keeps=True),
    "tilewright-bf16": Engine(
        "tilewright",
        partial(tilewright, precision="bf16"),
        "this compiler, products in bf16",
        keeps=True,
        on_request=True,
    ),
    "tilewright-fp16": Engine(
        "tilewright",
        partial(tilewright, precision="fp16"),
        "this compiler, computing in f16",
        keeps=True,
        on_request=True,
    ),
    "onnxruntime": Engine("onnxruntime", onnxruntime, "ONNX Runtime, all optimisations"),
    "openvino": Engine(
        "openvino", partial(openvino, INFERENCE_PRECISION_HINT="f32"), "OpenVINO held to f32"
    ),
    "openvino-default": Engine(
        "openvino", openvino, "OpenVINO in the precision it chooses", on_request=True
    ),
    "iree": Engine("iree", iree, "IREE through its ONNX importer", on_request=True),
    "tvm-untuned": Engine("tvm", tvm, "TVM without tuning; minutes a model", on_request=True),
}

# Engines that are asked for but cannot take part, and why.
REFUSED = dict.fromkeys(
    ("torch", "inductor", "jax"),
    "it runs modules or functions and does not read ONNX files",
)
