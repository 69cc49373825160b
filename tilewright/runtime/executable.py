"""A compiled model in the user's hands: call it, profile it, save it, export it.

    model = tw.load("model.tw")
    y = model(x)

What it knows of the model is the container's manifest, a JSON object:

    target       {"triple", "cpu", "features"}: all instruction sets the code may use
    symbols      names of the symbolic sizes, in the order of the native `dims`
    dim_sources  for each symbol [input, axis]: where its value is read from
    inputs       [{"name", "dtype", "shape"}], a dimension being a number or a symbol
    outputs      the same; a dimension may also be a formula in the symbols, as text
    kernels      [{"name", "flops", "bytes"}] in the order of the profiled nanoseconds
    explain      the compiler's report
    counters     {name: number}, the compiler's statistics
    threads      how many threads to use, 0 for one a processor
    errors       optional, {status: message} for what the native code may return
    roofline     optional, {"flops_per_second", "bytes_per_second"} of the target
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tilewright.core.config import config
from tilewright.core.errors import ExecutionError
from tilewright.runtime.binding import Binder, Port
from tilewright.runtime.container import Container, write_container
from tilewright.runtime.export import export_library
from tilewright.runtime.host import check_target
from tilewright.runtime.memory import address, aligned_empty
from tilewright.runtime.native import NativeModule
from tilewright.runtime.profile import Profile, make_profile

_NO_ARENA = aligned_empty((0,), np.dtype(np.uint8))


@dataclass(frozen=True)
class _Plan:
    """What is known of a call once the sizes are: kept, since the next call mostly has the same."""

    sizes: list[int]
    dims: ctypes.Array[ctypes.c_int64]
    outputs: tuple[tuple[tuple[int, ...], np.dtype], ...]
    arena_size: int


class Executable:
    """A model that runs: NumPy or DLPack arrays in, NumPy arrays out. Safe to call from threads."""

    def __init__(self, container: Container, *, threads: int | None = None) -> None:
        manifest = container.manifest
        check_target(manifest["target"])
        self.inputs = tuple(map(Port.from_manifest, manifest["inputs"]))
        self.outputs = tuple(map(Port.from_manifest, manifest["outputs"]))
        self._container = container
        self._binder = Binder(self.inputs, manifest["symbols"], manifest["dim_sources"])
        self._input_pointers = ctypes.c_void_p * len(self.inputs)
        self._output_pointers = ctypes.c_void_p * len(self.outputs)
        self._weights = address(container.weights)
        self._arena = _NO_ARENA
        self._plan: _Plan | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._native = NativeModule(container.objects)
        self._functions = self._native.functions
        default = config().threads or manifest.get("threads", 0)
        self.set_threads(default if threads is None else threads)
        _ALIVE.add(self)

    def __call__(self, /, *args: Any, **named: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """Run the model; inputs by position or name. One output is given alone, more as a tuple."""
        outputs = self._run(*self._binder.bind(args, named))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Run the model on inputs by name and give the outputs by name."""
        outputs = self._run(*self._binder.bind((), inputs))
        return {port.name: array for port, array in zip(self.outputs, outputs, strict=True)}

    def profile(self, /, *args: Any, runs: int = 10, **named: Any) -> Profile:
        """Run the model once to warm up and `runs` times measured: the time of each kernel."""
        arrays, sizes = self._binder.bind(args, named)
        manifest = self._container.manifest
        times = np.zeros(len(manifest["kernels"]), np.int64)
        for count in range(runs + 1):
            if count == 1:
                times[:] = 0
            self._run(arrays, sizes, times)
        return make_profile(manifest, runs, times.tolist())

    def explain(self) -> str:
        """What the compiler did: passes, fusion, schedules, the memory plan."""
        return str(self._container.manifest.get("explain", ""))

    @property
    def counters(self) -> dict[str, Any]:
        """The compiler's statistics, by name."""
        return dict(self._container.manifest.get("counters", {}))

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What is known of the model; see the module's description."""
        return self._container.manifest

    @property
    def threads(self) -> int:
        """How many threads run the model."""
        with self._lock:
            self._require_open()
            return int(self._functions["tw_get_threads"]())

    def set_threads(self, threads: int) -> None:
        """Use `threads` threads from now on; 0 means one for each processor."""
        if threads < 0:
            raise ExecutionError(
                "run.threads", f"{threads} threads asked for", help="0 means one for each processor"
            )
        with self._lock:
            self._require_open()
            self._functions["tw_set_threads"](threads)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to `path` as one file, for `tw.load`."""
        container = self._container
        return write_container(
            path, container.manifest, container.objects, [(0, container.weights)]
        )

    def export_library(self, path: str | os.PathLike[str]) -> Path:
        """Write a shared library with a C interface, and its header beside it."""
        return export_library(self._container, path)

    def close(self) -> None:
        """End the model's threads and free its code and memory; it cannot be called any more."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._native.close()
                self._arena = _NO_ARENA

    def __enter__(self) -> Executable:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        takes, gives = (", ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<Executable ({takes}) -> ({gives})>"

    def _run(
        self, arrays: Sequence[np.ndarray], sizes: Sequence[int], times: np.ndarray | None = None
    ) -> list[np.ndarray]:
        with self._lock:
            self._require_open()
            plan = self._plan
            if plan is None or sizes != plan.sizes:
                plan = self._plan = self._make_plan(sizes)
            outputs, targets = [], []
            for shape, dtype in plan.outputs:
                array, target = aligned_empty(shape, dtype)
                outputs.append(array)
                targets.append(target)
            pointers = (
                self._input_pointers(*map(address, arrays)),
                self._output_pointers(*targets),
                plan.dims,
                self._arena_for(plan),
                self._weights,
            )
            if times is None:
                status = self._functions["tw_main"](*pointers)
            else:
                status = self._functions["tw_main_profiled"](*pointers, address(times))
        if status != 0:
            raise self._failure(status)
        return outputs

    def _make_plan(self, sizes: Sequence[int]) -> _Plan:
        dims = (ctypes.c_int64 * len(sizes))(*sizes)
        shapes = (ctypes.c_int64 * sum(len(port.shape) for port in self.outputs))()
        self._functions["tw_output_shapes"](dims, shapes)
        outputs, start = [], 0
        for port in self.outputs:
            end = start + len(port.shape)
            shape = tuple(shapes[start:end])
            if min(shape, default=0) < 0:
                raise self._too_small(port, shape)
            outputs.append((shape, port.dtype.numpy))
            start = end
        return _Plan(list(sizes), dims, tuple(outputs), self._functions["tw_arena_size"](dims))

    def _too_small(self, port: Port, shape: tuple[int, ...]) -> ExecutionError:
        return ExecutionError(
            "run.too-small",
            f"the inputs are too small: output {port.name!r} would have shape {list(shape)}",
            help=f"its shape is {port}, which must not be negative",
        )

    def _arena_for(self, plan: _Plan) -> int:
        memory, start = self._arena
        if memory.nbytes < plan.arena_size:
            del memory
            self._arena = _NO_ARENA  # the old one goes before the new one comes
            self._arena = aligned_empty((plan.arena_size,), np.dtype(np.uint8))
            start = self._arena[1]
        return start

    def _require_open(self) -> None:
        if self._closed:
            raise ExecutionError("run.closed", "the model is closed", help="load it again")

    def _failure(self, status: int) -> ExecutionError:
        known = self._container.manifest.get("errors", {}).get(str(status))
        return ExecutionError(
            "run.status", known or f"the model's native code failed with status {status}"
        )

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # the thread that held it, if any, is not in the child


_ALIVE: weakref.WeakSet[Executable] = weakref.WeakSet()


def _renew_locks() -> None:
    for model in _ALIVE:
        model._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
