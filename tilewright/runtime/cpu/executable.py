"""A compiled model on this machine's processors: call it, profile it, save it, export it.

model = tw.load("model.tw")
y = model(x)
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.arguments import MAX_RUNS, MAX_THREADS, count_argument, runs_argument
from tilewright.core.config import config
from tilewright.core.errors import ExecutionError
from tilewright.runtime.container import Container
from tilewright.runtime.cpu.execution_context import ExecutionContext
from tilewright.runtime.cpu.host_features import check_target
from tilewright.runtime.cpu.native_module import NativeModule
from tilewright.runtime.host_memory import address
from tilewright.runtime.model import CompiledModel
from tilewright.runtime.shape_plan import ShapePlan, ShapePlanner

if TYPE_CHECKING:
    from tilewright.runtime.profile import Profile
    from tilewright.runtime.roofline.roofline import Roofline


class Executable(CompiledModel):
    """A model that runs: NumPy or DLPack arrays in, NumPy arrays out. Safe to call from threads.

    Each of the calls that run at once has a context; there are at most as many as processors.
    """

    def __init__(self, container: Container, *, threads: int | None = None) -> None:
        manifest = container.manifest
        check_target(manifest["target"])
        super().__init__(container)
        self._weights = address(container.weights)
        self._free: list[ExecutionContext] = []
        self._waiting = 0
        # weak, so that one lost to an interrupt in the middle of a call is not waited for
        self._contexts: weakref.WeakSet[ExecutionContext] = weakref.WeakSet()
        self._change = threading.Condition()
        self._closed = False
        self._native = NativeModule(container.objects)
        self._functions = self._native.functions
        self._status_bytes = manifest.get("index_checks", {}).get("bytes", 0)
        self._data_dependent = len(manifest.get("data_dependent_sizes", ()))
        limits = manifest.get("output_limits", ())
        self._planner = ShapePlanner(
            self._binder, self.outputs, self._functions, limits, self._data_dependent
        )
        self._functions["tw_set_spin"](config().spin_us)
        default = config().threads or manifest.get("threads", 0)
        self.set_threads(default if threads is None else threads)
        _ALIVE.add(self)

    def profile(
        self, /, *args: Any, runs: int = 10, roofline: Roofline | None = None, **named: Any
    ) -> Profile:
        """Run the model once to warm up, then `runs` times with clocks and as often without.

        With the `roofline` of this machine (see `machine_roofline`; one that was measured before
        need not be given) it also says how near each kernel comes to its bound.
        """
        from tilewright.runtime.profile import Measured, make_profile
        from tilewright.runtime.roofline.machine_roofline import known_roofline

        arrays, plan = self._bind(self._binder.in_order(args, named))
        manifest = self._container.manifest
        count = runs_argument(runs)
        times = np.zeros((count, len(manifest["kernels"])), np.int64)
        clocked, wholes = [], []
        self._run(arrays)
        for row in times:
            start = time.perf_counter_ns()
            self._run(arrays, times=row)
            between = time.perf_counter_ns()
            self._run(arrays)
            wholes.append(time.perf_counter_ns() - between)
            clocked.append(between - start)
        sizes = dict(
            zip(manifest["symbols"], plan.dims, strict=False)
        )  # data-dependent ones follow
        footprint = self._container.weights.nbytes + plan.arena_size
        measured = Measured(times.tolist(), clocked, wholes)
        known = roofline or known_roofline(self.threads)
        return make_profile(manifest, sizes, measured, footprint, known)

    def kernel_times(self, /, *args: Any, runs: int = 1) -> np.ndarray:
        """Nanoseconds of each kernel (a column) in each of `runs` runs (a row)."""
        arrays, _ = self._bind(self._binder.in_order(args, {}))
        count = count_argument("runs", runs, 0, MAX_RUNS)
        times = np.zeros((count, len(self._container.manifest["kernels"])), np.int64)
        for row in times:
            self._run(arrays, times=row)
        return times

    @property
    def threads(self) -> int:
        """How many threads run the model."""
        with self._change:
            self._require_open()
            return int(self._functions["tw_get_threads"]())

    def set_threads(self, threads: int) -> None:
        """Use `threads` threads from now on; 0 means one for each processor."""
        count = count_argument("threads", threads, 0, MAX_THREADS)
        with self._change:
            self._require_open()
            self._functions["tw_set_threads"](count)

    def export_library(self, path: str | os.PathLike[str]) -> Path:
        """Write a shared library with a C interface, and its header beside it."""
        # What few callers need is imported where it is needed: loading a model is quick.
        from tilewright.runtime.export.shared_library import export_library

        return export_library(self._container, path)

    def close(self) -> None:
        """End the model's threads and free its code and memory; it cannot be called any more.

        Calls that run are waited for.
        """
        with self._change:
            if self._closed:
                return
            self._closed = True
            self._waiting += 1
            taken: list[ExecutionContext] = []
            while not self._take_all(taken):
                self._change.wait(0.05)
            self._waiting -= 1
            self._native.close()

    def _run(
        self,
        args: Sequence[Any],
        into: Sequence[np.ndarray] | None = None,
        times: np.ndarray | None = None,
    ) -> Sequence[np.ndarray]:
        try:
            context = self._free.pop()
        except IndexError:
            context = self._another_context()
        try:
            status, outputs = context.run(args, into, times)
            if status != 0:
                raise self._failure(status, context.sizes, context.status_words(self._status_bytes))
        finally:
            self._free.append(context)
            if self._waiting:
                with self._change:
                    self._change.notify_all()
        return outputs

    def _bind(self, args: Sequence[Any]) -> tuple[Sequence[np.ndarray], ShapePlan]:
        with self._change:
            self._require_open()
            return self._planner.bind(args)

    def _another_context(self) -> ExecutionContext:
        """A new context, or where there are enough the next that is given back."""
        with self._change:
            # before the check: a context that is released from now on wakes this thread
            self._waiting += 1
            try:
                while True:
                    self._require_open()
                    if self._free:
                        return self._free.pop()
                    if len(self._contexts) < _processors():
                        return self._make_frame()
                    self._change.wait(0.05)
            finally:
                self._waiting -= 1

    def _take_all(self, taken: list[ExecutionContext]) -> bool:
        """Take the contexts that are free; whether all are taken now."""
        with suppress(IndexError):
            while True:
                taken.append(self._free.pop())
        return len(taken) == len(self._contexts)

    def _make_frame(self) -> ExecutionContext:
        context = ExecutionContext(
            self._functions["tw_call"],
            self._planner.bind,
            [port.dtype.numpy for port in self.inputs],
            [port.dtype.numpy for port in self.outputs],
            self._weights,
            self._planner.output_shapes if self._data_dependent else None,
        )
        self._contexts.add(context)
        return context

    def _require_open(self) -> None:
        if self._closed:
            raise ExecutionError("run.closed", "the model is closed", help="load it again")

    def _after_fork(self) -> None:
        # a thread in the middle of a call is not in the child, nor are its lock and its context
        self._change = threading.Condition()
        self._contexts, self._waiting = weakref.WeakSet(self._free), 0


def _processors() -> int:
    return len(os.sched_getaffinity(0))


_ALIVE: weakref.WeakSet[Executable] = weakref.WeakSet()


def _renew_locks() -> None:
    for model in _ALIVE:
        model._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
