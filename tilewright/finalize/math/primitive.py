"""What the expansions are written with: float formats, rounded literals, bit views, polynomials.

Every function here builds nodes that become one instruction each. Literals are rounded to the dtype
they are used in, so that every evaluator of an expansion gets the same result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.arith.expr import Bitcast, Const, Expr, call, const, maximum, minimum, select
from tilewright.core.dtypes import F32, F64, I32, I64, DType
from tilewright.core.node import node

Real = Expr | float


@node
class Format:
    """The layout of a float type: an integer type of its width, mantissa bits, exponent bias."""

    dtype: DType
    integer: DType
    mantissa: int
    bias: int

    @property
    def rounder(self) -> float:
        """Added to a small number it rounds it to an integer, held by the low mantissa bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def smallest_normal(self) -> float:
        """The least positive number that is not denormal."""
        return 2.0 ** (1 - self.bias)


FORMATS = {f.dtype: f for f in (Format(F32, I32, 23, 127), Format(F64, I64, 52, 1023))}


def format_of(x: Expr) -> Format:
    """The format of a float expression."""
    return FORMATS[x.dtype]


def literal(value: float, dtype: DType) -> Const:
    """A float literal rounded to `dtype`."""
    return const(float(dtype.numpy.type(value)), dtype)


def real(value: Real, like: Expr) -> Expr:
    """`value` as an expression of the dtype of `like`."""
    return value if isinstance(value, Expr) else literal(value, like.dtype)


def fma(a: Expr, b: Real, c: Real) -> Expr:
    """`a * b + c`, rounded once."""
    return call("fma", a, real(b, a), real(c, a))


def product(a: Expr, b: Real) -> Expr:
    """`a * b`, rounded, where its rounding error `fma(a, b, -product)` is used as well.

    A plain `*` may be contracted with a sum that it enters, which would count the error twice.
    """
    return fma(a, b, -0.0)


def absolute(x: Expr) -> Expr:
    """The absolute value."""
    return call("abs", x)


def sqrt(x: Expr) -> Expr:
    """The square root."""
    return call("sqrt", x)


def copysign(magnitude: Expr, sign: Expr) -> Expr:
    """`magnitude` with the sign of `sign`."""
    return call("copysign", magnitude, sign)


def times(a: Expr, b: float) -> Expr:
    """`a` times a literal rounded to its dtype."""
    return a * literal(b, a.dtype)


def clamp(x: Expr, low: float, high: float) -> Expr:
    """`x` brought into an interval; a NaN stays."""
    return minimum(maximum(x, literal(low, x.dtype)), literal(high, x.dtype))


def bits(x: Expr) -> Expr:
    """The bits of a float as an integer."""
    return Bitcast(format_of(x).integer, x)


def from_bits(i: Expr) -> Expr:
    """The float with these bits."""
    return Bitcast(F32 if i.dtype == I32 else F64, i)


def bits_of(value: float, f: Format) -> int:
    """The bits of a literal as a Python integer."""
    return int(f.dtype.numpy.type(value).view(f.integer.numpy))


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Horner's rule; the coefficient of the highest power comes first."""
    result: Expr = literal(coefficients[0], x.dtype)
    for c in coefficients[1:]:
        result = fma(result, x, c)
    return result


def horner2(x: Expr, coefficients: Sequence[float]) -> Expr:
    """The same polynomial by Horner's rule in `x**2`, on pairs of terms.

    Half as long a chain; and where a multiply-add overwrites its addend, half as many constants are
    copied first. The last rounding but one is of the two lowest terms, not of all but the lowest.
    """
    start = len(coefficients) % 2
    pairs = [_pair(x, *coefficients[n : n + 2]) for n in range(start, len(coefficients), 2)]
    square = x * x
    result = literal(coefficients[0], x.dtype) if start else pairs.pop(0)
    for pair in pairs:
        result = fma(square, result, pair)
    return result


def _pair(x: Expr, slope: float, constant: float) -> Expr:
    return x + literal(constant, x.dtype) if slope == 1 else fma(x, slope, constant)


def where_nan(cond: Expr, x: Expr) -> Expr:
    """NaN where `cond` holds, else `x`."""
    return select(cond, literal(math.nan, x.dtype), x)
