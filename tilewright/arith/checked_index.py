"""Indices that come from data: one that lies outside its dimension is reported.

    data[min(max(check(x[i], 0, n, 0), 0), n - 1)]

The value is the index itself, whatever it is: who uses it clamps it. An index is checked where the
masks of the loads hold that it is made of, and that of the load whose index it is.
`finalize/report_indices.py` makes statements of checks; interpreters raise an error.
"""

from __future__ import annotations

from dataclasses import field

from tilewright.arith.expr import Expr, expr
from tilewright.core.dtypes import I64, DType


@expr
class CheckedIndex(Expr):
    """`index`, which must lie in low .. size - 1; `site` numbers the checks of a kernel."""

    index: Expr
    low: Expr
    size: Expr
    site: int
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", I64)

    @property
    def is_outside(self) -> Expr:
        """Whether the index is not one of those that it must be."""
        return (self.index < self.low) | (self.size <= self.index)
