"""`log`, `log2`, `log1p`: the exponent, and a polynomial of the mantissa in [2/3, 4/3)."""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, binary, cast, select
from tilewright.core.dtypes import F32
from tilewright.finalize.math.exponential import LN2, LOG2_E
from tilewright.finalize.math.primitive import (
    Real,
    bits,
    bits_of,
    copysign,
    fma,
    format_of,
    from_bits,
    literal,
    polynomial,
    where_nan,
)

# (f - log(1 + f)) / f**2 for |f| <= 1/3; log(1 + f) has relative error 2**-27.6.
LOG_SINGLE = (
    0.12947835,
    -0.13992645,
    0.121727094,
    -0.14004429,
    0.16681218,
    -0.20010477,
    0.24999784,
    -0.33333215,
    0.5,
)
# (log((1 + s) / (1 - s)) / s - 2) / z in z = s**2 <= 0.0401; the logarithm has error 2**-55.9.
LOG_DOUBLE = (
    0.15373028665587957,
    0.15249576182303415,
    0.18186386118446582,
    0.222221377839136,
    0.28571429403840687,
    0.39999999996115637,
    0.6666666666667279,
)


def exponent_split(x: Expr) -> tuple[Expr, Expr]:
    """The integers `k << mantissa` and bits of `m` with positive normal `x = 2**k * m`.

    `m` is in [2/3, 4/3), so that numbers around one have `k = 0`.
    """
    f = format_of(x)
    field = -1 << f.mantissa
    k = binary("and", bits(x) - bits_of(2 / 3, f), field)
    return k, bits(x) - k


def scaled_exponent(k: Expr, x: Expr, offset: Real = 0.0) -> Expr:
    """`k` of `exponent_split`, plus an offset, as a float of the dtype of `x`."""
    f = format_of(x)
    return fma(cast(f.dtype, k), 2.0**-f.mantissa, offset)


def tail(f: Expr) -> Expr:
    """`f - log(1 + f)` for `|f| <= 1/3`; the difference keeps `f` exact for the final sum."""
    if f.dtype == F32:
        return f * f * polynomial(f, LOG_SINGLE)
    s = f / (f + 2.0)
    z = s * s
    return s * (f - z * polynomial(z, LOG_DOUBLE))


def normal(x: Expr) -> tuple[Expr, Expr]:
    """`x` scaled to a normal number, and the exponent that this took away."""
    f = format_of(x)
    denormal = x < literal(f.smallest_normal, f.dtype)
    scaled = select(denormal, x * 2.0**f.mantissa, x)
    return scaled, select(denormal, literal(-float(f.mantissa), f.dtype), literal(0.0, f.dtype))


def _parts(x: Expr) -> tuple[Expr, Expr]:
    """`k` and `f` with `x = 2**k * (1 + f)` for positive finite `x`."""
    scaled, offset = normal(x)
    k, m = exponent_split(scaled)
    return scaled_exponent(k, x, offset), from_bits(m) - 1.0


def _at_ends(x: Expr, result: Expr) -> Expr:
    """`result` where `x` is positive and finite, and what a logarithm is elsewhere."""
    infinity = literal(math.inf, x.dtype)
    finite = select(x < infinity, result, x)
    outside = where_nan(x.ne(0.0), -infinity)
    return select(literal(0.0, x.dtype) < x, finite, outside)


def weigh(k: Expr, f: Expr) -> Expr:
    """`k * ln 2 + log(1 + f)`."""
    # The rest of ln 2 would change the last digit by less than a quarter.
    return fma(k, LN2[f.dtype][0], f - tail(f))


def log(x: Expr) -> Expr:
    """The natural logarithm."""
    return _at_ends(x, weigh(*_parts(x)))


def log2(x: Expr) -> Expr:
    """The logarithm to base two."""
    k, f = _parts(x)
    return _at_ends(x, fma(f - tail(f), LOG2_E, k))


def log1p(x: Expr) -> Expr:
    """`log(1 + x)`, accurate near zero: `x` itself is scaled, since `1 + x` has lost digits."""
    f = format_of(x)
    k, _ = exponent_split(x + 1.0)
    # 2**-k could be denormal, so it is taken four times as large.
    scale = from_bits(bits_of(4.0, f) - k)
    scaled = from_bits(bits(x) - k)
    m = scaled + fma(scale, 0.25, -1.0)
    result = weigh(scaled_exponent(k, x), m)
    inside = select(x < literal(math.inf, f.dtype), result, x)
    outside = where_nan(x.ne(-1.0), literal(-math.inf, f.dtype))
    return copysign(select(literal(-1.0, f.dtype) < x, inside, outside), x)
