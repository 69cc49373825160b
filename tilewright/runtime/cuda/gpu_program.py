"""A compiled model on a GPU: what is loaded there, an execution context for each set of sizes.

The driver is asked for when the model first runs, so that a machine without a GPU can make and save
one. Everything here is done under `lock`.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import ExecutionError
from tilewright.runtime.arena_layout import arena_layout
from tilewright.runtime.binding import Binder, Port
from tilewright.runtime.container import Container
from tilewright.runtime.cuda.driver import Driver, open_driver
from tilewright.runtime.cuda.execution_context import CudaExecutionContext
from tilewright.runtime.cuda.loaded_program import LoadedProgram
from tilewright.runtime.shape_plan import ShapePlan, ShapePlanner
from tilewright.runtime.size_expr import evaluate

MAX_CONTEXTS = 64
"""Sets of sizes whose execution contexts are kept."""
MAX_WITH_MEMORY = 8
"""The contexts that keep memory of their own, the last to be made."""

EARLIER_CALL = "in an earlier call"
"""What is said of errors that a call did not wait for."""


class GpuProgram:
    """The part of a model that all its calls share, whoever owns the memory."""

    def __init__(
        self,
        container: Container,
        binder: Binder,
        outputs: Sequence[Port],
        driver: Driver | None,
        errors: tuple[Callable[..., ExecutionError], Callable[..., ExecutionError]],
    ) -> None:
        """`errors` makes the error of a status, and of the words of an index check."""
        manifest = container.manifest
        self.inputs, self.outputs = binder.inputs, tuple(outputs)
        self.data_dependent = len(manifest.get("data_dependent_sizes", ()))
        functions: dict[str, Callable[..., Any]] = {
            "tw_arena_size": self._arena_size,
            "tw_output_shapes": self._fill_shapes,
        }
        limits = manifest.get("output_limits", ())
        self.planner = ShapePlanner(binder, outputs, functions, limits, self.data_dependent)
        self.lock = threading.RLock()
        self.loaded: LoadedProgram | None = None
        self.driver = driver
        self.contexts: dict[int, CudaExecutionContext] = {}
        self._container = container
        self._program = manifest["program"]
        self._failure, self._index_error = errors
        self._closed = False

    def open(self) -> Driver:
        """The driver in this thread, with the model's code and weights on the GPU."""
        if self._closed:
            raise ExecutionError("run.closed", "the model is closed", help="load it again")
        driver = self.driver = self.driver or open_driver()
        driver.failures.require_context()
        driver.enter()
        if self.loaded is None:
            with driver.relaxed():
                self.loaded = LoadedProgram(driver, self._container)
        return driver

    def context(self, plan: ShapePlan, stream: int) -> CudaExecutionContext:
        """The context of these sizes, whose work goes to a stream."""
        key = id(plan)
        if key not in self.contexts or self.contexts[key].plan is not plan:
            self._make_room()
            inputs, outputs = (
                [p.dtype.numpy for p in ports] for ports in (self.inputs, self.outputs)
            )
            driver = self.open()
            assert self.loaded is not None
            about = (self._program, self.loaded, plan, (inputs, outputs))
            self.contexts[key] = CudaExecutionContext(driver, *about, stream)
        self.contexts[key].stream = stream
        return self.contexts[key]

    def check(self, status: int, plan: ShapePlan) -> None:
        """Raise the error that a status of a run stands for, unless it is 0."""
        if status:
            raise self._failure(status, tuple(plan.dims), ())

    def raise_reports(self, *notes: str) -> None:
        """Raise the error of an index that kernels have reported."""
        if self.loaded is None or self.loaded.status is None:
            return
        words = self.loaded.status.take()
        if words is not None:
            raise self._index_error(words, notes)

    def narrowed(self, plan: ShapePlan, context: CudaExecutionContext) -> list[tuple[int, ...]]:
        """The shapes of the part of each result that the run has written."""
        sizes = {**self._sizes(plan.dims), **context.data_dependent_sizes}
        return list(
            self.planner.checked(
                [tuple(evaluate(d, sizes) for d in s) for s in self._program["output_shapes"]]
            )
        )

    def close(self) -> None:
        """Free code and memory."""
        self._closed = True
        if self.driver is None or self.loaded is None:
            return
        self.driver.enter()
        for context in self.contexts.values():
            context.close()
        self.loaded.close()
        self.contexts, self.loaded = {}, None

    def _make_room(self) -> None:
        """Close the oldest context if there are too many, and take the memory of most others."""
        kept = list(self.contexts.values())
        old = [context for context in kept[: 1 - MAX_WITH_MEMORY] if context.holds_memory]
        if old:
            self.open().synchronize_all()  # their calls may still run
        for context in old:
            context.release()
        if len(kept) >= MAX_CONTEXTS:
            self.contexts.pop(next(iter(self.contexts))).close()

    def _sizes(self, dims: ctypes.Array[ctypes.c_int64]) -> dict[str, int]:
        names = (*self._program["symbols"], *self._program["data_dependent_sizes"])
        return dict(zip(names, dims, strict=False))

    def _arena_size(self, dims: ctypes.Array[ctypes.c_int64]) -> int:
        return arena_layout(self._program["arena"], self._sizes(dims))[1]

    def _fill_shapes(
        self, dims: ctypes.Array[ctypes.c_int64], found: ctypes.Array[ctypes.c_int64]
    ) -> None:
        shapes, sizes = self._program["output_shapes"], self._sizes(dims)
        for n, dim in enumerate(d for shape in shapes for d in shape):
            found[n] = evaluate(dim, sizes)


def first_elements(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The first elements as an array of another shape."""
    return array.reshape(-1)[: int(np.prod(shape))].reshape(shape)
