"""What special functions are written with: they are computed in f64, by polynomials.

Coefficients are those of Chebyshev interpolations at 50 digits, brought to powers; the highest
comes first. Each polynomial is of a variable from -1 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

from tilewright.arith.expr import Expr, call, cast, const
from tilewright.core.dtypes import F64

NAN, INF = const(float("nan"), F64), const(float("inf"), F64)


def real(value: float) -> Expr:
    """A number in f64."""
    return const(float(value), F64)


def polynomial(coefficients: Sequence[float], t: Expr) -> Expr:
    """The sum of powers of `t`, by Horner's rule."""
    total = real(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * t + real(coefficient)
    return total


def double(formula: Callable[..., Expr]) -> Callable[..., Expr]:
    """`formula` computed in f64: its parts cancel, and who calls it has few elements."""

    @wraps(formula)
    def widened(attrs: object, x: Expr, *rest: Expr) -> Expr:
        return cast(x.dtype, formula(attrs, *(cast(F64, e) for e in (x, *rest))))

    return widened


def is_whole(x: Expr) -> Expr:
    """Whether a number is an integer."""
    return call("floor", x).eq(x)


def is_fraction(x: Expr) -> Expr:
    """Whether a number lies between integers."""
    return call("floor", x).ne(x)


def from_nearest(x: Expr) -> Expr:
    """The distance from the nearest integer, with its sign."""
    return x - call("round_even", x)
