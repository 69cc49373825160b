"""Everything one set of sizes needs on the GPU: memory for a call, and the captured graph.

Inputs, outputs and the arena are one allocation; what comes from and goes to the host passes
through pinned memory, which the GPU reads and writes by itself.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.core.config import config
from tilewright.runtime.cuda.actions import Run, Spaces, is_fixed
from tilewright.runtime.cuda.arena import lay_out
from tilewright.runtime.cuda.driver import RUNNING, Driver
from tilewright.runtime.memory import address
from tilewright.runtime.plan import Plan

ALIGNMENT = 256


class Frame:
    """The memory of a call on a GPU. Not to be used by two threads at once."""

    def __init__(
        self,
        driver: Driver,
        program: Mapping[str, Any],
        functions: Mapping[str, int],
        weights: int,
        plan: Plan,
        dtypes: tuple[Sequence[np.dtype], Sequence[np.dtype]],
    ) -> None:
        self.driver = driver
        self.program = program
        self.functions = functions
        self.plan = plan
        self._dtypes = dtypes[1]
        self._sizes = dict(zip(program["symbols"], plan.dims, strict=False))
        offsets, arena = lay_out(program["arena"], self._sizes)
        self._sizes |= offsets
        shapes = (*plan.inputs, *plan.outputs)
        self._bytes = [
            math.prod(shape) * dtype.itemsize
            for shape, dtype in zip(shapes, (*dtypes[0], *dtypes[1]), strict=True)
        ]
        starts, total = _in_a_row([*self._bytes, arena])
        self._count = len(plan.inputs)
        self.memory = driver.allocate(total)
        self.pinned = driver.allocate_pinned(starts[-1])
        self.stream = driver.create_stream()
        self._starts = starts
        places = [self.memory + start for start in starts]
        self.spaces = Spaces(places[: self._count], places[self._count : -1], places[-1], weights)
        self._graph: int | None = None
        self.late: dict[str, int] = {}

    def run(self, arrays: Sequence[np.ndarray]) -> tuple[int, list[np.ndarray]]:
        """The status of a run on these arrays, and its results."""
        self.put_inputs(arrays)
        status = self.compute()
        if status:
            return status, []
        for n in range(self._count, len(self._bytes)):
            self._move(self.driver.download, self.pinned, self.memory, n)
        self.driver.synchronize(self.stream, RUNNING)
        return 0, [self._result(n) for n in range(len(self._dtypes))]

    def put_inputs(self, arrays: Sequence[np.ndarray]) -> None:
        """Bring the inputs to the GPU."""
        for n, array in enumerate(arrays):
            ctypes.memmove(self.pinned + self._starts[n], address(array), self._bytes[n])
            self._move(self.driver.upload, self.memory, self.pinned, n)

    def compute(self) -> int:
        """Run the kernels on what lies on the GPU; the second time as a captured graph."""
        if config().gpu_sync:
            return self.launch_all()
        if self._graph is None and is_fixed(self.program["actions"]):
            self.driver.begin_capture(self.stream)
            status = self.launch_all()
            graph = self.driver.end_capture(self.stream)
            if status:
                self.driver.destroy_graph(graph)
                return status
            self._graph = graph
        if self._graph is None:
            return self.launch_all()
        self.driver.launch_graph(self._graph, self.stream)
        return 0

    def launch_all(self, between: Callable[[int], None] | None = None) -> int:
        """Launch kernel after kernel; `between` is called after each step."""
        sizes = dict(self._sizes)
        kernels = self.program["kernels"]
        run = Run(
            self.driver,
            kernels,
            self.functions,
            self.spaces,
            sizes,
            self.stream,
            between,
            config().gpu_sync,
        )
        status = run.do(self.program["actions"])
        self.late = {name: sizes.get(name, 0) for name in self.program["late"]}
        return status

    def close(self) -> None:
        """Give the memory back."""
        if self._graph is not None:
            self.driver.destroy_graph(self._graph)
        self.driver.destroy_stream(self.stream)
        self.driver.free(self.memory)
        self.driver.free_pinned(self.pinned)

    def _move(
        self, copy: Callable[[int, int, int, int], None], to: int, source: int, n: int
    ) -> None:
        if self._bytes[n]:
            start = self._starts[n]
            copy(to + start, source + start, self._bytes[n], self.stream)

    def _result(self, number: int) -> np.ndarray:
        n = self._count + number
        result = np.empty(self.plan.outputs[number], self._dtypes[number])
        ctypes.memmove(address(result), self.pinned + self._starts[n], self._bytes[n])
        return result


def _in_a_row(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where each part begins, one behind the other, and the size of all."""
    starts, end = [], 0
    for size in sizes:
        starts.append(end)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return starts, end
