"""The execution context of a call on a CPU, kept so that the next call is cheap.

It owns the call frame that `codegen/host/call_frame.py` describes, the arena, and the memory of the
results. Arguments of the same types and shapes as in the last call take the fast path: only their
addresses are written to the frame. All others are checked, bound, and get a shape plan.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.runtime.cpu.output_pool import OutputPool
from tilewright.runtime.host_memory import DATA_OFFSET, address, aligned_empty
from tilewright.runtime.shape_plan import ShapePlan, Shapes

_COUNT, _OFFSET, _DIMS, _ARENA, _WEIGHTS, _NS, _INPUTS = range(7)
_CONTIGUOUS_ALIGNED = 0x101  # of `ndarray.flags.num`
_ndarray = np.ndarray
_NO_ARENA = aligned_empty((0,), np.dtype(np.uint8))

Binding = Callable[[Sequence[Any]], tuple[Sequence[np.ndarray], ShapePlan]]
"""Checks arguments and makes arrays of them; gives these and the plan for their shapes."""


class ExecutionContext:
    """The memory of a call. Not to be used by two threads at once."""

    def __init__(
        self,
        call: Callable[[int], int],
        bind: Binding,
        inputs: Sequence[np.dtype],
        outputs: Sequence[np.dtype],
        weights: int,
        shapes_after: Callable[[ctypes.Array[ctypes.c_int64]], Shapes] | None = None,
    ) -> None:
        """`shapes_after` gives the results' shapes where only the call itself decides them."""
        self._call = call
        self._shapes_after = shapes_after
        self._bind = bind
        self._dtypes = tuple(inputs)
        self._inputs, self._outputs = range(len(inputs)), range(len(outputs))
        self._pools = [OutputPool(dtype) for dtype in outputs]
        self._arena = _NO_ARENA
        self._block = (ctypes.c_int64 * (_INPUTS + 2 * len(inputs) + len(outputs)))()
        self._block[_COUNT] = len(inputs)
        self._block[_WEIGHTS] = weights
        self._address = ctypes.addressof(self._block)
        self._first_output = _INPUTS + 2 * len(inputs)
        self._hold, self._holders = self._choose_holders(len(inputs))
        self._plan: ShapePlan | None = None
        self._dims = (ctypes.c_int64 * 0)()

    def run(
        self,
        args: Sequence[Any],
        into: Sequence[np.ndarray] | None = None,
        times: np.ndarray | None = None,
    ) -> tuple[int, Sequence[np.ndarray]]:
        """Run the model; its status and the results, which are `into` where that is given.

        `times` gets the nanoseconds of each kernel added to it.
        """
        # a name of their own keeps new arrays alive during the call
        arrays = args if self._place_known(args) else self._place(args)  # noqa: F841
        results = self._results() if into is None else self._results_into(into)
        status = self._call(self._address) if times is None else self._run_measured(times)
        if self._shapes_after is not None and status == 0:
            return status, _narrowed(results, self._shapes_after(self._dims))
        return status, results

    @property
    def sizes(self) -> tuple[int, ...]:
        """The symbolic sizes of the last call."""
        return tuple(self._dims)

    def status_words(self, size: int) -> Sequence[int]:
        """The last `size` bytes of the arena: what index checks of the last call have reported."""
        assert self._plan is not None
        end = self._block[_ARENA] + self._plan.arena_size
        return (ctypes.c_int64 * (size // 8)).from_address(end - size)[:]

    def _run_measured(self, times: np.ndarray) -> int:
        self._block[_NS] = address(times)
        try:
            return self._call(self._address)
        finally:
            self._block[_NS] = 0

    def _choose_holders(self, count: int) -> tuple[Callable[[Any], int], Any]:
        """How native code gets the address of an array, and where it is written."""
        holders = (ctypes.c_int64 * count).from_buffer(self._block, (_INPUTS + count) * 8)
        if DATA_OFFSET is not None:
            self._block[_OFFSET] = DATA_OFFSET
            return id, holders
        cells = (ctypes.c_int64 * count)()
        for index in range(count):
            holders[index] = ctypes.addressof(cells) + 8 * index
        return address, cells

    def _place_known(self, args: Sequence[Any]) -> bool:
        """Place the arguments if they are arrays like those of the last call."""
        plan = self._plan
        if plan is None or len(args) != len(self._inputs):
            return False
        # indices and names of this function: the fastest that Python has
        dtypes, shapes, holders, hold = self._dtypes, plan.inputs, self._holders, self._hold
        for i in self._inputs:
            array = args[i]
            if (
                type(array) is not _ndarray
                or array.dtype is not dtypes[i]
                or array.shape != shapes[i]
                or array.flags.num & _CONTIGUOUS_ALIGNED != _CONTIGUOUS_ALIGNED
            ):
                return False
            holders[i] = hold(array)
        return True

    def _place(self, args: Sequence[Any]) -> Sequence[np.ndarray]:
        arrays, plan = self._bind(args)
        if plan is not self._plan:
            self._use(plan)
        for index, array in enumerate(arrays):
            self._holders[index] = self._hold(array)
        return arrays

    def _use(self, plan: ShapePlan) -> None:
        memory, start = self._arena
        self._plan = None  # in case there is no memory for a new arena
        if memory.nbytes < plan.arena_size:
            del memory
            self._arena = _NO_ARENA  # the old one goes before the new one comes
            self._arena = aligned_empty((plan.arena_size,), np.dtype(np.uint8))
            start = self._arena[1]
        self._block[_ARENA] = start
        # a call writes its data-dependent sizes there, so each context has its own
        self._dims = plan.dims if self._shapes_after is None else type(plan.dims)(*plan.dims)
        self._block[_DIMS] = ctypes.addressof(self._dims)
        self._plan = plan

    def _results(self) -> list[np.ndarray]:
        assert self._plan is not None
        results, shapes = [], self._plan.outputs
        block, pools, first = self._block, self._pools, self._first_output
        for i in self._outputs:
            array, block[first + i] = pools[i].take(shapes[i])
            results.append(array)
        return results

    def _results_into(self, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        for word, array in enumerate(arrays, self._first_output):
            self._block[word] = address(array)
        return arrays


def _narrowed(results: Sequence[np.ndarray], shapes: Shapes) -> Sequence[np.ndarray]:
    """As much of each result as the call has written."""
    parts = zip(results, map(math.prod, shapes), shapes, strict=True)
    return [array.reshape(-1)[:size].reshape(shape) for array, size, shape in parts]
