"""Indices that come from data, as positions in a dimension.

A negative index counts from the end. Every position is clamped, so that no kernel ever reads or
writes beyond a buffer. With the mode `raise` an index outside its dimension is also reported, which
ends the run with an error; `clip` takes the nearest element without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tilewright.arith.checked_index import CheckedIndex
from tilewright.arith.expr import Expr, as_int, cast, const, maximum, minimum, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64, U64
from tilewright.ir.types import TensorType
from tilewright.ops.op import fail
from tilewright.ops.shape.assumptions import has_elements

# What becomes of an index outside its dimension, as in NumPy.
MODES = ("raise", "clip")

Check = Callable[[Expr, Expr, Expr], Expr]
"""Makes an expression that reports an index outside: of the index, the least, and the size."""


class IndexedPlace(NamedTuple):
    """Positions, and a mask under which the element there is read or written."""

    positions: tuple[Expr, ...]
    when: Expr | None


class Sites:
    """Numbers the checks of a function that is given as loops."""

    def __init__(self) -> None:
        self.count = 0

    def check(self, index: Expr, low: Expr, size: Expr) -> Expr:
        """The next check."""
        self.count += 1
        return CheckedIndex(index, low, size, self.count - 1)


def place_of(
    indices: Sequence[Expr], sizes: Sequence[Expr], check: Check | None, wraps: bool = True
) -> IndexedPlace:
    """Where indices point to, one for each of the dimensions.

    Negative ones count from the end, or where nothing `wraps` they lie outside.
    """
    found: list[Expr] = []
    when: Expr | None = None
    for index, size in zip(indices, sizes, strict=True):
        # As an i64 even a u64 may be negative.
        signed = index.dtype.kind != "uint" or index.dtype == U64
        wrapped = wraps and index.dtype.kind == "int"
        i = cast(I64, index)
        if check is not None:
            i = check(i, simplify(-size) if wrapped else const(0), size)
        from_front = select(i < 0, i + size, i) if wrapped else i
        if check is not None and as_int(size) == 1:
            # The position of the only element needs no index: the mask keeps the check alive.
            holds = from_front.eq(0)
            found.append(const(0))
            when = holds if when is None else when & holds
        else:
            found.append(minimum(maximum(from_front, 0) if signed else i, simplify(size - 1)))
    return IndexedPlace(tuple(found), when)


def check_indices(
    op: str, mode: str, data: TensorType, indices: TensorType, axes: Sequence[int]
) -> None:
    """Raise TypeCheckError unless `indices` can select along `axes` of `data`."""
    if mode not in MODES:
        raise fail(op, f"the mode is {mode!r}", f"use one of {', '.join(MODES)}")
    if not indices.dtype.is_integer:
        raise fail(op, f"the indices are {indices}", "cast them to i32 or i64")
    if not all(has_elements(op, data.shape[a], indices.shape) for a in axes):
        raise fail(op, f"{data} has no elements to select along its axis")
