"""`isinf` and `sign`."""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, const, select
from tilewright.finalize.math.primitive import absolute, literal


def isinf(x: Expr) -> Expr:
    """Whether `x` is infinite."""
    return absolute(x).eq(literal(math.inf, x.dtype))


def sign(x: Expr) -> Expr:
    """One with the sign of `x`, 0 for zeros of either sign; NaN stays."""
    positive = const(0, x.dtype) < x
    if x.dtype.kind == "uint":
        return select(positive, const(1, x.dtype), x)
    # Of a float's zero the sign is lost.
    rest = absolute(x) if x.dtype.is_float else x
    return select(positive, const(1, x.dtype), select(x < 0, const(-1, x.dtype), rest))
