"""The entry point of a model, by kind of machine.

On a CPU that is native code: the function that calls the kernels in order, threads, a clock. On a
GPU it is data: the launches, which the runtime captures as one graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.codegen.gpu.launches import launches
from tilewright.codegen.gpu.plan_manifest import LaunchedKernel, device_program
from tilewright.codegen.host.call_frame import CALL_IR
from tilewright.codegen.host.clock import CLOCK_IR
from tilewright.codegen.host.entry_points import emit_model
from tilewright.codegen.host.threadpool.pool import threadpool_ir
from tilewright.driver.model_build import ModelBuild
from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target, kind_of

# The module that calls the kernels one after another.
ENTRY = "tw_model"


def emit_entry(build: ModelBuild) -> dict[str, str]:
    """The LLVM text of the module that calls the kernels, by name."""
    return _ENTRY[kind_of(build.target)](build)


def emit_support(target: Target) -> dict[str, str]:
    """The LLVM text of the modules that are the same in every model, by name."""
    return _SUPPORT[kind_of(target)](target)


def emit_modules(build: ModelBuild) -> dict[str, str]:
    """The LLVM text of every module of the model, by name."""
    texts = {name: kernel.llvm for name, kernel in build.distinct_kernels.items()}
    return texts | emit_entry(build) | emit_support(build.target)


def frame_data(build: ModelBuild) -> dict[str, Any]:
    """What the manifest says of how a run goes."""
    return _DATA[kind_of(build.target)](build)


def _native_entry(build: ModelBuild) -> dict[str, str]:
    return {ENTRY: emit_model(build.code)}


def _native_support(target: Target) -> dict[str, str]:
    return {"tw_runtime": threadpool_ir(target.triple), "tw_clock": CLOCK_IR, "tw_call": CALL_IR}


def _launch_list(build: ModelBuild) -> dict[str, Any]:
    rows = [
        LaunchedKernel(
            k.name, k.dim_params, k.finalized.params, launches(k.finalized), k.strided_params
        )
        for k in build.distinct_kernels.values()
    ]
    assert isinstance(build.target, GpuTarget)
    return {"program": device_program(build.code, rows, build.target)}


_ENTRY: dict[str, Callable[[ModelBuild], dict[str, str]]] = {
    "cpu": _native_entry,
    "gpu": lambda build: {},
}
_SUPPORT: dict[str, Callable[[Target], dict[str, str]]] = {
    "cpu": _native_support,
    "gpu": lambda target: {},
}
_DATA: dict[str, Callable[[ModelBuild], dict[str, Any]]] = {
    "cpu": lambda build: {},
    "gpu": _launch_list,
}
