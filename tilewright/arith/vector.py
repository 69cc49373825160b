"""Vectors of indices, elements of vectors and vectors of them, which vectorised loops become.

`Broadcast`, which folding makes too, stands with the other nodes in `expr.py`.
"""

from __future__ import annotations

from dataclasses import field

from tilewright.arith.expr import Expr, expr
from tilewright.core.dtypes import DType

# With a larger stride, most of what lies between the elements would be loaded for nothing.
MAX_DENSE_STRIDE = 4


@expr
class Ramp(Expr):
    """The index vector `base, base + stride, ...` of `count` lanes."""

    base: Expr
    stride: int
    count: int
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.base.dtype)

    @property
    def lanes(self) -> int:
        """How many elements the value has."""
        return self.count

    @property
    def is_dense(self) -> bool:
        """Whether elements with gaps are best picked from whole vectors that cover them."""
        return 2 <= self.stride <= min(MAX_DENSE_STRIDE, self.count - 1)


@expr
class Lane(Expr):
    """One element of a vector, by its number."""

    a: Expr
    index: int
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)

    @property
    def lanes(self) -> int:
        """One: it is a scalar."""
        return 1


@expr
class Shuffle(Expr):
    """A vector of elements of two others of one type, numbered through both."""

    a: Expr
    b: Expr
    picks: tuple[int, ...]
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)

    @property
    def lanes(self) -> int:
        """How many elements the value has."""
        return len(self.picks)
