"""A compiled model in the user's hands: call it, profile it, save it, export it.

    model = tw.load("model.tw")
    y = model(x)

What it knows of the model is the container's manifest, a JSON object:

    target       {"triple", "cpu", "features"}: all instruction sets the code may use
    precision    what the compiler was allowed: "f32", or "bf16" for products
    symbols      names of the symbolic sizes, in the order of the native `dims`
    dim_sources  for each symbol [input, axis]: where its value is read from
    inputs       [{"name", "dtype", "shape"}], a dimension being a number or a symbol
    outputs      the same; a dimension may also be a formula in the symbols, as text
    kernels      the steps, in the order of the profiled nanoseconds: {"name", "flops", "bytes",
                 "weights" (bytes that are constants), "nodes" (computed), "apart" (not fused, why)}
    schedules    {kernel: {"rule", "why", "decisions"}}
    explain      the compiler's report
    counters     {name: number}, the compiler's statistics
    threads      how many threads to use, 0 for one a processor
    errors       optional, {status: message} for what the native code may return
    late         optional, names of sizes that only a run gives, behind the others in `dims`
    output_limits  with `late`: the outputs' shapes at most
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.config import config
from tilewright.core.errors import ExecutionError
from tilewright.runtime.binding import Binder, Port, check_results
from tilewright.runtime.container import Container, write_container
from tilewright.runtime.frame import Frame
from tilewright.runtime.host import check_target
from tilewright.runtime.memory import address
from tilewright.runtime.native import NativeModule
from tilewright.runtime.plan import Plan, Planner

if TYPE_CHECKING:
    from tilewright.runtime.profile import Profile
    from tilewright.runtime.roofs import Roofs


class Executable:
    """A model that runs: NumPy or DLPack arrays in, NumPy arrays out. Safe to call from threads.

    Each of the calls that run at once has a frame; there are at most as many as processors.
    """

    def __init__(self, container: Container, *, threads: int | None = None) -> None:
        manifest = container.manifest
        check_target(manifest["target"])
        self.inputs = tuple(map(Port.from_manifest, manifest["inputs"]))
        self.outputs = tuple(map(Port.from_manifest, manifest["outputs"]))
        self._output_names = [port.name for port in self.outputs]
        self._container = container
        self._binder = Binder(self.inputs, manifest["symbols"], manifest["dim_sources"])
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

    def __call__(self, /, *args: Any, **named: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """Run the model; inputs by position or name. One output is given alone, more as a tuple."""
        outputs = self._run(self._binder.in_order(args, named) if named else args)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(
        self, inputs: Mapping[str, Any], into: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """Run the model on inputs by name and give the outputs by name.

        Where `into` is given it holds an array for each output, to which the results are written.
        """
        args: Sequence[Any] = self._binder.in_order((), inputs)
        targets = None
        if into is not None:
            args, plan = self._bind(args)
            targets = check_results(self.outputs, plan.outputs, into, args)
        outputs = self._run(args, targets)
        return dict(zip(self._output_names, outputs, strict=True))

    def profile(
        self, /, *args: Any, runs: int = 10, roofs: Roofs | None = None, **named: Any
    ) -> Profile:
        """Run the model once to warm up, then `runs` times with clocks and as often without.

        With the `roofs` of this machine (see `machine_roofs`; where they were measured once, they
        need not be given) it also says how near each kernel comes to what is possible.
        """
        from tilewright.runtime.profile import Measured, make_profile
        from tilewright.runtime.roofs import known_roofs

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
    def container(self) -> Container:
        """The compiled model as it is written to a file."""
        return self._container

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

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to `path` as one file, for `tw.load`."""
        container = self._container
        return write_container(
            path, container.manifest, container.objects, [(0, container.weights)]
        )

    def export_library(self, path: str | os.PathLike[str]) -> Path:
        """Write a shared library with a C interface, and its header beside it."""
        # What few callers need is imported where it is needed: loading a model is quick.
        from tilewright.runtime.export import export_library

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

    def _failure(self, status: int, sizes: Sequence[int]) -> ExecutionError:
        known = self._container.manifest.get("errors", {}).get(str(status))
        if known is None:
            message = f"the model's native code failed with status {status}"
            return ExecutionError("run.status", message)
        given = zip(self._container.manifest["symbols"], sizes, strict=False)
        text = ", ".join(f"{name} = {size}" for name, size in given)
        return ExecutionError("run.check", known, help=f"the sizes are {text}" if text else "")

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
