"""Indices that are read from data: one that is out of bounds is reported.

    data[min(max(check(x[i], 0, n, 0), 0), n - 1)]

The value is the index itself, in bounds or not; its user clamps it. A check applies only where the
masks hold of the loads in the index and of the load that uses the index.
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
        """Whether the index is out of bounds."""
        return (self.index < self.low) | (self.size <= self.index)
