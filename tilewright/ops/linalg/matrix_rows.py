"""What the factorizations share: their operands' types, and access to one matrix of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load
from tilewright.core.dtypes import DType
from tilewright.ir.loop.nodes import Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.op import fail
from tilewright.ops.shape.assumptions import same_size


def check_matrices(op: str, x: TensorType, square: bool = False) -> None:
    """Refuse what is no matrix of f32 or f64, or not square where it must be."""
    if x.rank < 2 or not x.dtype.is_float or x.dtype.bits < 32:
        raise fail(op, f"{x} is no matrix of f32 or f64")
    if square and same_size(op, *x.shape[-2:]) is None:
        raise fail(op, f"matrices of {x} are not square")


class Matrix:
    """One matrix of a batch in a buffer: its elements, and what is stored to them."""

    def __init__(self, buffer: str, batch: Sequence[Expr], dtype: DType) -> None:
        self.buffer, self.batch, self.dtype = buffer, tuple(batch), dtype

    def at(self, *place: Expr) -> Load:
        """The element at a row and a column."""
        return Load(self.buffer, (*self.batch, *place), self.dtype)

    def put(self, *place_and_value: Expr) -> Stmt:
        """Store an element: row, column and value."""
        *place, value = place_and_value
        return Store(self.buffer, (*self.batch, *place), value)
