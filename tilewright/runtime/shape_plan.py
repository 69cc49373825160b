"""What follows from the shapes of a call's arguments: sizes, shapes of the results, the arena."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright.core.config import config
from tilewright.core.errors import ExecutionError
from tilewright.runtime.binding import Binder, Dim, Port
from tilewright.runtime.size_expr import evaluate_text

Shapes = tuple[tuple[int, ...], ...]

_PLANS = 64  # kept, for as many combinations of sizes


@dataclass(frozen=True, eq=False)
class ShapePlan:
    """What is known of a call once the shapes of its inputs are."""

    inputs: Shapes
    outputs: Shapes
    dims: ctypes.Array[ctypes.c_int64]
    arena_size: int


class ShapePlanner:
    """Arguments in, arrays and a plan out; plans are kept for calls of the same shapes."""

    def __init__(
        self,
        binder: Binder,
        outputs: Sequence[Port],
        functions: Mapping[str, Callable[..., Any]],
        limits: Sequence[Sequence[Dim]] = (),
        data_dependent: int = 0,
    ) -> None:
        """`limits` are upper bounds of the output shapes, if there are `data_dependent` sizes."""
        self._binder = binder
        self._limits = tuple(map(tuple, limits))
        self._data_dependent = data_dependent
        self._outputs = tuple(outputs)
        self._functions = functions
        self._plans: dict[Shapes, ShapePlan] = {}

    def bind(self, args: Sequence[Any]) -> tuple[Sequence[np.ndarray], ShapePlan]:
        """One contiguous array for each input, after every check, and the plan for their shapes."""
        plan = self._known(args)
        if plan is not None:
            return args, plan
        arrays, sizes = self._binder.bind(args)
        shapes = tuple([array.shape for array in arrays])
        plan = self._plans.get(shapes)
        if plan is None:
            plan = self._make(shapes, sizes)
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[shapes] = plan
        return arrays, plan

    def _known(self, args: Sequence[Any]) -> ShapePlan | None:
        """The plan of an earlier call with arrays like these, which need no change and no check."""
        dtypes = self._binder.dtypes
        if len(args) != len(dtypes):
            return None
        for array, dtype in zip(args, dtypes, strict=True):
            if type(array) is not np.ndarray or array.dtype is not dtype:
                return None
            if not (array.flags.c_contiguous and array.flags.aligned):
                return None
        return self._plans.get(tuple([array.shape for array in args]))

    def _make(self, inputs: Shapes, sizes: Sequence[int]) -> ShapePlan:
        dims = (ctypes.c_int64 * (len(sizes) + self._data_dependent))(*sizes)
        shapes = self._limit_shapes(sizes) if self._data_dependent else self.output_shapes(dims)
        arena_size = self._functions["tw_arena_size"](dims)
        self._require_memory(arena_size, shapes)
        return ShapePlan(inputs, shapes, dims, arena_size)

    def _require_memory(self, arena_size: int, shapes: Shapes) -> None:
        """Raise ExecutionError if a run needs more memory than it may have; none is taken yet."""
        results = sum(
            prod(shape) * port.dtype.bytes
            for port, shape in zip(self._outputs, shapes, strict=True)
        )
        limit = config().memory_limit_gb * 10**9
        if arena_size + results > limit:
            raise ExecutionError(
                "run.memory-limit",
                f"a run needs {arena_size + results} bytes, {limit:.0f} are allowed",
                help="give smaller inputs, or set TW_MEMORY_LIMIT_GB higher",
            )

    def output_shapes(self, dims: ctypes.Array[ctypes.c_int64]) -> Shapes:
        """The shapes of the outputs; data-dependent sizes are those of the last run."""
        found = (ctypes.c_int64 * sum(len(port.shape) for port in self._outputs))()
        self._functions["tw_output_shapes"](dims, found)
        shapes, start = [], 0
        for port in self._outputs:
            end = start + len(port.shape)
            shapes.append(tuple(found[start:end]))
            start = end
        return self.checked(shapes)

    def checked(self, shapes: Sequence[tuple[int, ...]]) -> Shapes:
        """The shapes of the outputs, none of which is negative."""
        for port, shape in zip(self._outputs, shapes, strict=True):
            if min(shape, default=0) < 0:
                raise _too_small(port, shape)
        return tuple(shapes)

    def _limit_shapes(self, sizes: Sequence[int]) -> Shapes:
        values = dict(zip(self._binder.symbols, sizes, strict=True))
        return self.checked([tuple(_dimension(d, values) for d in s) for s in self._limits])


def _dimension(dim: Dim, sizes: Mapping[str, int]) -> int:
    size = evaluate_text(dim, sizes) if isinstance(dim, str) else dim
    if size is None:
        raise ExecutionError("run.manifest", f"the size {dim} cannot be computed")
    return size


def _too_small(port: Port, shape: tuple[int, ...]) -> ExecutionError:
    return ExecutionError(
        "run.too-small",
        f"the inputs are too small: output {port.name!r} would have shape {list(shape)}",
        help=f"its shape is {port}, which must not be negative",
    )
