"""Numbers as integers of the same order: what sorts and selections compare.

    key(x: f32) = b < 0 ? -(b & 0x7fffffff) : b       b: the bits of x;  0x7fffffff - 1 for NaN

All NaN are equal and greater than all numbers, and zeros are equal. Where the least comes first,
keys are complemented, so that the greatest key always comes first.
"""

from __future__ import annotations

from tilewright.arith.expr import Bitcast, Expr, cast, const, select
from tilewright.core.dtypes import F32, I16, I32, I64, U64, DType
from tilewright.core.node import node

# The bits of infinity, by the type of a float.
_INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}
_INTS = {16: I16, 32: I32, 64: I64}


@node
class SortKeys:
    """Keys of elements of a type: integers of `bits`, in registers of `dtype`."""

    source: DType
    largest: bool

    @property
    def bits(self) -> int:
        """Keys are from -2^(bits - 1), which is the key of none if there is room, and less than its
        negative.
        """
        if self.source.is_float:
            return self.source.bits if self.source.name in _INFINITY else F32.bits
        return min(self.source.bits + (2 if self.source.kind == "uint" else 1), I64.bits)

    @property
    def dtype(self) -> DType:
        """The type of keys."""
        return I32 if self.bits <= I32.bits else I64

    @property
    def least(self) -> int:
        """The least of all keys."""
        return -(1 << (self.bits - 1))

    @property
    def has_free_least(self) -> bool:
        """Whether that is the key of no element."""
        return self.source.is_float or self.source.bits < I64.bits

    def of(self, x: Expr) -> Expr:
        """The key of an element."""
        key = self._of_float(x) if self.source.is_float else self._of_integer(x)
        return key if self.largest else -1 - key

    def _of_integer(self, x: Expr) -> Expr:
        if self.source == U64:
            return Bitcast(I64, x) ^ const(-(1 << 63), I64)
        return cast(self.dtype, x)

    def _of_float(self, x: Expr) -> Expr:
        if x.dtype.name not in _INFINITY:
            x = cast(F32, x)
        infinity, greatest = _INFINITY[x.dtype.name], -self.least - 1
        word = cast(self.dtype, Bitcast(_INTS[x.dtype.bits], x))
        size = word & greatest
        number = select(word < 0, -size, size)
        return select(size <= infinity, number, const(greatest - 1, self.dtype))
