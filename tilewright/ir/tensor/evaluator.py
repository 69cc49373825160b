"""The value of an expression on a whole grid of index values at once, with NumPy broadcasting.

Every variable is an array open along its own dimension of the grid, so a subexpression is computed
only for the dimensions that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.arith.checked_index import CheckedIndex
from tilewright.arith.expr import (
    Binary,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    Var,
)
from tilewright.arith.walk import loads
from tilewright.core.dtypes import literal_value
from tilewright.core.errors import ExecutionError, index_outside
from tilewright.ir.scalar_semantics import (
    BINARY_OPS,
    UNARY_OPS,
    Array,
    bitcast_value,
    call_value,
    cast_value,
)
from tilewright.ir.tensor.grid_gather import gather


class Evaluator:
    """Evaluates expressions on one grid; `guard` says where loads may access memory at all."""

    def __init__(
        self,
        variables: Mapping[str, Array],
        tensors: Mapping[str, Array],
        rank: int,
        guard: Array | None = None,
    ) -> None:
        self.variables = variables
        self.tensors = tensors
        self.rank = rank
        self.guard = guard
        self._known: dict[Expr, Array] = {}

    def value(self, e: Expr) -> Array:
        """The value of `e`, broadcastable to the grid."""
        if e not in self._known:
            self._known[e] = np.asarray(_VALUE[type(e)](self, e))
        return self._known[e]

    def guarded(self, mask: Array) -> Evaluator:
        """An evaluator for what is read only where `mask` holds."""
        return Evaluator(self.variables, self.tensors, self.rank, mask)


def _var(v: Evaluator, e: Var) -> Array:
    if e.name not in v.variables:
        raise ExecutionError("interp.size", f"no value for the size {e.name}")
    return v.variables[e.name].astype(e.dtype.numpy, copy=False)


def _load(v: Evaluator, e: Load) -> Array:
    array = v.tensors[e.buffer]
    masks = [m for m in (v.guard, None if e.mask is None else v.value(e.mask)) if m is not None]
    mask = None if not masks else masks[0] if len(masks) == 1 else masks[0] & masks[1]
    inner = v if mask is None or not _has_loads(e) else v.guarded(mask)
    indices = tuple(inner.value(i) for i in e.indices)
    if mask is None:
        _check(e, array, indices)
        return gather(array, indices, v.rank)
    if array.size == 0:
        return np.zeros((1,) * v.rank, array.dtype)
    clipped = tuple(np.clip(i, 0, n - 1) for i, n in zip(indices, array.shape, strict=True))
    for given, allowed in zip(indices, clipped, strict=True):
        if (given != allowed).any() and (mask & (given != allowed)).any():
            raise _out_of_bounds(e, array)
    return np.where(mask, gather(array, clipped, v.rank), np.zeros((), array.dtype))


def _has_loads(e: Load) -> bool:
    return any(True for i in e.indices for _ in loads(i))


def _check(e: Load, array: Array, indices: tuple[Array, ...]) -> None:
    for index, size in zip(indices, array.shape, strict=True):
        if index.size and (index.min() < 0 or index.max() >= size):
            raise _out_of_bounds(e, array)


def _out_of_bounds(e: Load, array: Array) -> ExecutionError:
    return ExecutionError(
        "interp.out-of-bounds",
        f"{e} reads outside {e.buffer!r} of shape {list(array.shape)}",
        help="give the load a mask, or clamp the index",
    )


def _checked_index(v: Evaluator, e: CheckedIndex) -> Array:
    index, size = v.value(e.index), v.value(e.size)
    outside = (index < v.value(e.low)) | (index >= size)
    for mask in (v.guard, *(v.value(x.mask) for x in loads(e.index) if x.mask is not None)):
        outside = outside if mask is None else outside & mask
    if outside.any():
        wrong, sizes = np.broadcast_arrays(index, size, outside)[:2]
        raise index_outside(wrong[outside][0], sizes[outside][0])
    return index


def _constant(v: Evaluator, e: Const) -> Any:
    if e.dtype.is_float:
        return np.asarray(literal_value(e.value, e.dtype))
    return np.array(e.value).astype(e.dtype.numpy)


_VALUE: dict[type, Callable[[Evaluator, Any], Any]] = {
    Const: _constant,
    Var: _var,
    Load: _load,
    Binary: lambda v, e: BINARY_OPS[e.op](v.value(e.a), v.value(e.b)),
    Unary: lambda v, e: UNARY_OPS[e.op](v.value(e.a)),
    Call: lambda v, e: call_value(e.fn, e.dtype, *map(v.value, e.args)),
    Cast: lambda v, e: cast_value(v.value(e.a), e.dtype),
    Bitcast: lambda v, e: bitcast_value(v.value(e.a), e.dtype),
    CheckedIndex: _checked_index,
    Select: lambda v, e: np.where(v.value(e.cond), v.value(e.a), v.value(e.b)),
}
