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

from tilewright.core.config import config
from tilewright.core.errors import ExecutionError
from tilewright.runtime.container import Container
from tilewright.runtime.cpu.execution_context import Frame
from tilewright.runtime.cpu.host_features import check_target
from tilewright.runtime.cpu.native_module import NativeModule
from tilewright.runtime.host_memory import address
from tilewright.runtime.model import CompiledModel
from tilewright.runtime.shape_plan import Plan, Planner

if TYPE_CHECKING:
    from tilewright.runtime.profile import Profile
    from tilewright.runtime.roofline.roofline import Roofs


class Executable(CompiledModel):
    """A model that runs: NumPy or DLPack arrays in, NumPy arrays out. Safe to call from threads.

    Each of the calls that run at once has a frame; there are at most as many as processors.
    """

    def __init__(self, container: Container, *, threads: int | None = None) -> None:
        manifest = container.manifest
        check_target(manifest["target"])
        super().__init__(container)
        self._weights = address(container.weights)
        self._free: list[Frame] = []
        self._waiting = 0
        # weak, so that one lost to an interrupt in the middle of a call is not waited for
        self._frames: weakref.WeakSet[Frame] = weakref.WeakSet()
        self._change = threading.Condition()
        self._closed = False
        self._native = NativeModule(container.objects)
        self._functions = self._native.functions
        self._late = len(manifest.get("late", ()))
        limits = manifest.get("output_limits", ())
        self._planner = Planner(self._binder, self.outputs, self._functions, limits, self._late)
        self._functions["tw_set_spin"](config().spin_us)
        default = config().threads or manifest.get("threads", 0)
        self.set_threads(default if threads is None else threads)
        _ALIVE.add(self)

    def profile(
        self, /, *args: Any, runs: int = 10, roofs: Roofs | None = None, **named: Any
    ) -> Profile:
        """Run the model once to warm up, then `runs` times with clocks and as often without.

        With the `roofs` of this machine (see `machine_roofs`; where they were measured once, they
        need not be given) it also says how near each kernel comes to what is possible.
        """
        from tilewright.runtime.profile import Measured, make_profile
        from tilewright.runtime.roofline.roofline import known_roofs

        arrays, plan = self._bind(self._binder.in_order(args, named))
        manifest = self._container.manifest
        times = np.zeros((runs, len(manifest["kernels"])), np.int64)
        clocked, wholes = [], []
        self._run(arrays)
        for row in times:
            start = time.perf_counter_ns()
            self._run(arrays, times=row)
            between = time.perf_counter_ns()
            self._run(arrays)
            wholes.append(time.perf_counter_ns() - between)
            clocked.append(between - start)
        sizes = dict(zip(manifest["symbols"], plan.dims, strict=False))  # late ones come behind
        footprint = self._container.weights.nbytes + plan.arena_size
        measured = Measured(times.tolist(), clocked, wholes)
        known = roofs or known_roofs(self.threads)
        return make_profile(manifest, sizes, measured, footprint, known)

    def kernel_times(self, /, *args: Any, runs: int = 1) -> np.ndarray:
        """Nanoseconds of each kernel (a column) in each of `runs` runs (a row)."""
        arrays, _ = self._bind(self._binder.in_order(args, {}))
        times = np.zeros((runs, len(self._container.manifest["kernels"])), np.int64)
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
        if threads < 0:
            raise ExecutionError(
                "run.threads", f"{threads} threads asked for", help="0 means one for each processor"
            )
        with self._change:
            self._require_open()
            self._functions["tw_set_threads"](threads)

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
            taken: list[Frame] = []
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
            frame = self._free.pop()
        except IndexError:
            frame = self._another_frame()
        try:
            status, outputs = frame.run(args, into, times)
            if status != 0:
                raise self._failure(status, frame.sizes)
        finally:
            self._free.append(frame)
            if self._waiting:
                with self._change:
                    self._change.notify_all()
        return outputs

    def _bind(self, args: Sequence[Any]) -> tuple[Sequence[np.ndarray], Plan]:
        with self._change:
            self._require_open()
            return self._planner.bind(args)

    def _another_frame(self) -> Frame:
        """A new frame, or where there are enough the next that is given back."""
        with self._change:
            # before looking: who gives a frame back from now on tells us
            self._waiting += 1
            try:
                while True:
                    self._require_open()
                    if self._free:
                        return self._free.pop()
                    if len(self._frames) < _processors():
                        return self._make_frame()
                    self._change.wait(0.05)
            finally:
                self._waiting -= 1

    def _take_all(self, taken: list[Frame]) -> bool:
        """Take the frames that are free; whether all are taken now."""
        with suppress(IndexError):
            while True:
                taken.append(self._free.pop())
        return len(taken) == len(self._frames)

    def _make_frame(self) -> Frame:
        frame = Frame(
            self._functions["tw_call"],
            self._planner.bind,
            [port.dtype.numpy for port in self.inputs],
            [port.dtype.numpy for port in self.outputs],
            self._weights,
            self._planner.output_shapes if self._late else None,
        )
        self._frames.add(frame)
        return frame

    def _require_open(self) -> None:
        if self._closed:
            raise ExecutionError("run.closed", "the model is closed", help="load it again")

    def _after_fork(self) -> None:
        # a thread in the middle of a call is not in the child, nor are its lock and its frame
        self._change = threading.Condition()
        self._frames, self._waiting = weakref.WeakSet(self._free), 0


def _processors() -> int:
    return len(os.sched_getaffinity(0))


_ALIVE: weakref.WeakSet[Executable] = weakref.WeakSet()


def _renew_locks() -> None:
    for model in _ALIVE:
        model._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
