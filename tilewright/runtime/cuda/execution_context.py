"""The execution context of one set of sizes on a GPU: what is launched, and memory to do it in.

Memory is taken when a call first needs it: an arena where no caller lends one, and pinned memory
through which inputs and outputs of the host are staged.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tilewright.core.config import config
from tilewright.runtime.arena_layout import arena_layout
from tilewright.runtime.cuda.cuda_graph import CudaGraph
from tilewright.runtime.cuda.driver import Driver
from tilewright.runtime.cuda.driver_failures import RUNNING
from tilewright.runtime.cuda.launch_recorder import LaunchRecorder, RecordedLaunch, placeholders
from tilewright.runtime.cuda.loaded_program import LoadedProgram
from tilewright.runtime.cuda.plan_executor import (
    BufferBases,
    Device,
    PlanExecutor,
    conditions,
    is_capturable,
)
from tilewright.runtime.host_memory import address
from tilewright.runtime.shape_plan import ShapePlan
from tilewright.runtime.size_expr import evaluate

# Of every part of a buffer, as the driver aligns whole buffers.
ALIGNMENT = 256
# The alignment of inputs and outputs that vector accesses of kernels need.
VECTOR_BYTES = 16
# CUDA graphs that are kept, one for each outcome of the host's conditions.
MAX_GRAPHS = 16


class OnGpu(Protocol):
    """An array in the memory of the GPU."""

    @property
    def address(self) -> int:
        """The address of its first element."""

    @property
    def dtype(self) -> np.dtype | None:
        """Its element type, checked already."""


Array = np.ndarray | OnGpu


class CudaExecutionContext:
    """The memory of a call on a GPU. Not thread-safe."""

    def __init__(
        self,
        driver: Driver,
        program: Mapping[str, Any],
        loaded: LoadedProgram,
        plan: ShapePlan,
        dtypes: tuple[Sequence[np.dtype], Sequence[np.dtype]],
        stream: int,
    ) -> None:
        self.driver = driver
        self.program = program
        self.plan = plan
        self.stream = stream
        self._loaded = loaded
        self._dtypes = dtypes[1]
        self._sizes = dict(zip(program["symbols"], plan.dims, strict=False))
        offsets, self.arena_size = arena_layout(program["arena"], self._sizes)
        self._sizes |= offsets
        shapes = (*plan.inputs, *plan.outputs)
        self.bytes = [
            math.prod(shape) * dtype.itemsize
            for shape, dtype in zip(shapes, (*dtypes[0], *dtypes[1]), strict=True)
        ]
        self._count = len(plan.inputs)
        self._starts, self._staged = _in_a_row(self.bytes)
        self._memory = self._pinned = 0
        self._is_capturable = is_capturable(program["actions"])
        self._host_inputs = program.get("host_inputs", ())
        self._conditions = conditions(program["actions"], {name for name, _ in self._host_inputs})
        self._graphs: dict[tuple[bool, ...], CudaGraph] = {}
        self._recorded: tuple[int, list[RecordedLaunch] | None] | None = None
        self._choices: tuple[bool, ...] = ()
        self.data_dependent_sizes: dict[str, int] = {}
        self._arena = 0
        self.closed = False

    def run(self, arrays: Sequence[Array]) -> tuple[int, list[np.ndarray]]:
        """The status of a run on these arrays, and its results."""
        places = [*self.put_inputs(arrays), *self.places[self._count :]]
        status = self.compute(places)
        if status:
            return status, []
        for n in range(self._count, len(self.bytes)):
            self._move(self.driver.download, self._pinned, self._memory, n)
        self.driver.synchronize(self.stream, self.doing)
        return 0, [self._result(n) for n in range(len(self._dtypes))]

    def put_inputs(self, arrays: Sequence[Array]) -> list[int]:
        """Upload the inputs that are not on the GPU; gives the address of each."""
        self._ask(arrays)
        return [self._put(n, array) for n, array in enumerate(arrays)]

    def put_staged(self, arrays: Sequence[Array]) -> None:
        """Upload the inputs to their device buffers."""
        self._ask(arrays)
        for n, (place, array) in enumerate(zip(self.places, arrays, strict=False)):
            if isinstance(array, np.ndarray):
                self._put(n, array)
            elif self.bytes[n]:
                self.driver.copy(place, array.address, self.bytes[n], self.stream)

    @property
    def arena(self) -> int:
        """Memory for what is computed between inputs and outputs."""
        if not self._arena:
            self._arena = self.driver.allocate(self.arena_size)
        return self._arena

    @property
    def places(self) -> list[int]:
        """The device buffers of inputs and outputs of the host, and the arena."""
        if not self._memory:
            self._memory = self.driver.allocate(self._staged)
        if not self._pinned:
            self._pinned = self.driver.allocate_pinned(self._staged)
        return [*(self._memory + start for start in self._starts), self.arena]

    def compute(self, places: Sequence[int] | None = None) -> int:
        """Run the kernels on data that is on the GPU, as a CUDA graph where they can be captured.

        There is a graph for each outcome of the conditions that the host evaluates. Inputs, outputs
        and the arena are at `places`, or in memory of this context.
        """
        places = self.places if places is None else places
        if not self._is_capturable or config().gpu_sync:
            return self.launch_all(places=places)
        if self._choices not in self._graphs:
            status, launches = self._record()
            if status:
                return status
            if launches is None:
                return self.launch_all(places=places)
            if len(self._graphs) >= MAX_GRAPHS:
                self._graphs.pop(next(iter(self._graphs))).close()
            self._graphs[self._choices] = CudaGraph(self.driver, launches, places)
        self._graphs[self._choices].run(places, self.stream)
        return 0

    def always(self) -> list[RecordedLaunch] | None:
        """What each run launches, if that depends on the sizes alone and a CUDA graph can have it.

        With no host condition there is one record, which is kept.
        """
        if not self._is_capturable or self._conditions:
            return None
        if self._recorded is None:
            self._recorded = self._record()
        status, launches = self._recorded
        return None if status else launches

    def recorded(self) -> list[RecordedLaunch] | None:
        """What a run launches, if a CUDA graph can have it."""
        if not self._is_capturable or config().gpu_sync:
            return None
        return self._record()[1]

    def _record(self) -> tuple[int, list[RecordedLaunch] | None]:
        """The status of a run that is only recorded, and its launches; none where it copies."""
        recorder = LaunchRecorder(self.program["kernels"])
        status = self._run(recorder, placeholders(len(self.bytes) + 1))
        return status, None if status or recorder.copies else recorder.launches

    def launch_all(
        self,
        between: Callable[[int], None] | None = None,
        places: Sequence[int] | None = None,
    ) -> int:
        """Launch step by step; `between` is called after each step."""
        return self._run(self.driver, self.places if places is None else places, between)

    @property
    def doing(self) -> str:
        """What the GPU is doing, for errors that a wait reports."""
        graph = self._graphs.get(self._choices)
        names = graph.names if graph else ()
        return f"kernel {names[0]} ran" if len(names) == 1 else RUNNING

    @property
    def holds_memory(self) -> bool:
        """Whether a call has taken memory that is this context's own."""
        return bool(self._memory or self._pinned or self._arena)

    def release(self) -> None:
        """Free all memory; a later call takes what it needs anew."""
        if self._memory:
            self.driver.free(self._memory)
        if self._pinned:
            self.driver.free_pinned(self._pinned)
        if self._arena:
            self.driver.free(self._arena)
        self._memory = self._pinned = self._arena = 0

    def close(self) -> None:
        """Free memory and graphs."""
        self.closed = True
        for graph in self._graphs.values():
            graph.close()
        self._graphs = {}
        self.release()

    def _run(
        self,
        device: Device,
        places: Sequence[int],
        between: Callable[[int], None] | None = None,
    ) -> int:
        sizes, loaded, count = dict(self._sizes), self._loaded, self._count
        inputs, outputs, arena = places[:count], places[count:-1], places[-1]
        status = loaded.status.address if loaded.status is not None else 0
        bases = BufferBases(inputs, outputs, arena, loaded.weights, status)
        kernels, waits = self.program["kernels"], config().gpu_sync
        run = PlanExecutor(
            device, kernels, loaded.functions, bases, sizes, self.stream, between, waits
        )
        ended = run.do(self.program["actions"])
        self.data_dependent_sizes = {
            name: sizes.get(name, 0) for name in self.program["data_dependent_sizes"]
        }
        return ended

    def _ask(self, arrays: Sequence[Array]) -> None:
        """Read the inputs of host conditions, and evaluate these."""
        self._sizes |= {name: self._number(arrays[n]) for name, n in self._host_inputs}
        self._choices = tuple(bool(evaluate(c, self._sizes)) for c in self._conditions)

    def _number(self, array: Array) -> int:
        """The integer of a scalar array; one on the GPU is downloaded."""
        if isinstance(array, np.ndarray):
            return int(array.reshape(-1)[0])
        found = np.empty(1, array.dtype)
        self.driver.download(address(found), array.address, found.nbytes, self.stream)
        self.driver.synchronize(self.stream)
        return int(found[0])

    def _put(self, n: int, array: Array) -> int:
        """The device address of an input: its own, if it is on the GPU and aligned."""
        if not isinstance(array, np.ndarray):
            if array.address % VECTOR_BYTES == 0:
                return int(array.address)
            place = self.places[n]
            self.driver.copy(place, array.address, self.bytes[n], self.stream)
            return place
        place = self.places[n]
        ctypes.memmove(self._pinned + self._starts[n], address(array), self.bytes[n])
        self._move(self.driver.upload, self._memory, self._pinned, n)
        return place

    def _move(
        self, copy: Callable[[int, int, int, int], None], to: int, source: int, n: int
    ) -> None:
        if self.bytes[n]:
            start = self._starts[n]
            copy(to + start, source + start, self.bytes[n], self.stream)

    def _result(self, number: int) -> np.ndarray:
        n = self._count + number
        result = np.empty(self.plan.outputs[number], self._dtypes[number])
        ctypes.memmove(address(result), self._pinned + self._starts[n], self.bytes[n])
        return result


def _in_a_row(sizes: Sequence[int]) -> tuple[list[int], int]:
    """The offset of each part, one behind the other, and the total size."""
    starts, end = [], 0
    for size in sizes:
        starts.append(end)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return starts, end
