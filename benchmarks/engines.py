"""All engines of the benchmarks: those that read ONNX (the package's own table), torch and JAX.

Torch runs the module a model was exported from, JAX the ONNX file's operators written in `jnp`
(`jax_model.py`), so that XLA compiles the whole model. This file is also the worker process:

    python benchmarks/engines.py ENGINE JOB.json        # without arguments: what is installed
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from isa import NOT_LIMITED, limited_target

from tilewright.bench import worker
from tilewright.bench.engines import ENGINES as READING_ONNX
from tilewright.bench.engines import Engine, EngineJob, EngineSession, tilewright


def torch_session(job: EngineJob, freezing: bool | None = None) -> EngineSession:
    """The model's torch module, through `torch.compile` unless `freezing` is None."""
    import torch
    import torch._inductor.config as config

    torch.set_num_threads(job.threads)
    module, keywords = torch_module(job)
    function = module
    if freezing is not None:
        config.freezing = freezing
        function = torch.compile(module, backend="inductor")

    def call() -> Any:
        with torch.no_grad():
            return function(**keywords)

    def fetch(result: Any) -> list[np.ndarray]:
        return [t.numpy() for t in (result if isinstance(result, tuple) else (result,))]

    return EngineSession(call, fetch)


def torch_module(job: EngineJob) -> tuple[Any, dict[str, Any]]:
    """The torch module that a model was exported from, and its keyword arguments."""
    if job.model.parent.parent.name in ("kernels", "sweep"):
        import torch
        from operators import torch_kernel

        inputs = {name: torch.from_numpy(value) for name, value in job.inputs.items()}
        return torch_kernel(job.model), inputs
    from modules import arguments
    from zoo import MODELS

    build = MODELS[job.model.parent.name].build
    if build is None:
        raise NotImplementedError("the model is an ONNX file, torch has no module of it")
    return build(), arguments(job.inputs)


def jax_session(job: EngineJob) -> EngineSession:
    """XLA on the CPU, with weights as constants."""
    # XLA has no switch for its threads: it takes one a processor it may run on.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: job.threads])
    import jax
    from jax_model import jax_model, settings_of

    function = jax.jit(jax_model(job.model, settings=settings_of(job.inputs)))
    arrays = jax.device_put(dict(job.inputs))
    return EngineSession(lambda: jax.block_until_ready(function(arrays)), list)


def metaschedule(job: EngineJob) -> EngineSession:
    """What TVM's MetaSchedule left beside the model, see `metaschedule.py`."""
    import tvm
    from tvm import relax

    library = tvm.runtime.load_module(str(job.model.parent / "metaschedule.so"))
    function = relax.VirtualMachine(library, tvm.cpu())["main"]
    arrays = [tvm.runtime.tensor(value) for value in job.inputs.values()]
    return EngineSession(lambda: function(*arrays), lambda result: [result.numpy()])


ENGINES: dict[str, Engine] = {
    **READING_ONNX,
    "tvm-tuned": Engine("tvm", metaschedule, "TVM's MetaSchedule", on_request=True),
    "torch-compile": Engine("torch", partial(torch_session, freezing=False), "torch.compile"),
    "torch-frozen": Engine(
        "torch", partial(torch_session, freezing=True), "torch.compile, weights packed in advance"
    ),
    "torch": Engine("torch", torch_session, "torch without compiling", on_request=True),
    "jax": Engine("jax", jax_session, "XLA by way of JAX"),
}

if limited_target() != "native":
    held = partial(tilewright, target=limited_target())
    ENGINES["tilewright"] = replace(ENGINES["tilewright"], load=held)
    ENGINES = {name: engine for name, engine in ENGINES.items() if name not in NOT_LIMITED}

QUICK = ("tilewright", "onnxruntime", "openvino")
"""Engines that load within seconds, on most machines also the fastest."""

if __name__ == "__main__":
    worker.main(ENGINES)
