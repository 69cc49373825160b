"""`pow` and `rsqrt`.

`pow(x, y)` is `2**(y * log2(|x|))`. The exponent reaches 150 for f32, so the logarithm is computed
in f64; for f64 it reaches 1075, and the logarithm is a sum of two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.arith.expr import Const, Expr, call, cast, select
from tilewright.core.dtypes import F32, F64
from tilewright.finalize.math.exponential import (
    EXP2,
    EXP2_RANGE,
    LOG2_E,
    rounded_power,
)
from tilewright.finalize.math.logarithm import exponent_split, normal, scaled_exponent
from tilewright.finalize.math.primitive import (
    absolute,
    clamp,
    copysign,
    fma,
    from_bits,
    literal,
    polynomial,
    product,
    sqrt,
    times,
    where_nan,
)

# (log((1 + s) / (1 - s)) / s - 2) / z in z = s**2 <= 0.0401; the logarithm has error 2**-35.3.
LOG_SHORT = (0.24102166545165454, 0.28506895943828847, 0.40000865067730396, 0.66666663074968)
# 2**r for |r| <= 1/2, relative error 2**-29.0.
EXP2_SHORT = (
    0.00015345846966838503,
    0.0013399931298254935,
    0.009618488812516708,
    0.055503287761187584,
    0.24022646892120994,
    0.6931472057381831,
    1.0000000005539635,
)
# As `LOG_SHORT` without its last term, which is exactly 2/3 here; the logarithm has error 2**-69.
LOG_LONG = (
    0.12577407577938837,
    0.11591393559920346,
    0.13341208339634497,
    0.15384404420527656,
    0.18181821569918574,
    0.22222222190767116,
    0.28571428571579977,
    0.3999999999999972,
)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LOG2_E_REST = 2.0355273740931033e-17


def rsqrt(x: Expr) -> Expr:
    """One over the square root."""
    return literal(1.0, x.dtype) / sqrt(x)


def _single(a: Expr, y: Expr) -> Expr:
    """`a**y` for positive finite f32 `a`, in f64, where a denormal `a` is a normal number."""
    wide = cast(F64, a)
    k, m = exponent_split(wide)
    f = from_bits(m) - 1.0
    s = f / (f + 2.0)
    z = s * s
    log = f - s * (f - z * polynomial(z, LOG_SHORT))
    exponent = cast(F64, y) * fma(log, LOG2_E, scaled_exponent(k, wide))
    # Far enough to round to zero and infinity in f32.
    exponent = clamp(exponent, -300.0, 300.0)
    n, scale = rounded_power(exponent, 1.0)
    return cast(F32, polynomial(exponent - n, EXP2_SHORT) * scale)


def _two_product(a: Expr, b: Expr, rest: Expr) -> tuple[Expr, Expr]:
    """`a * b + rest` as a rounded number and its error."""
    high = product(a, b)
    return high, fma(a, b, -high) + rest


def _two_sum(large: Expr, small: Expr, rest: Expr) -> tuple[Expr, Expr]:
    """`large + small + rest` as a rounded number and its error."""
    high = large + small
    return high, (large - high) + small + rest


def _log2_pair(a: Expr) -> tuple[Expr, Expr]:
    """The logarithm to base two of a positive finite f64, as a number and its error."""
    scaled, offset = normal(a)
    k, m = exponent_split(scaled)
    f = from_bits(m) - 1.0
    v = f + 2.0
    s = f / v
    s_rest = fma(-s, f - (v - 2.0), fma(-s, v, f)) / v
    z, z_rest = _two_product(s, s, (s + s) * s_rest)
    third, third_rest = (literal(c, F64) for c in TWO_THIRDS)
    series, series_rest = _two_sum(third, z * polynomial(z, LOG_LONG), third_rest)
    t, t_rest = _two_product(z, series, fma(z, series_rest, z_rest * series))
    u, u_rest = _two_sum(literal(2.0, F64), t, t_rest)
    log, log_rest = _two_product(s, u, fma(s, u_rest, s_rest * u))
    high, rest = _two_product(
        log, literal(LOG2_E, F64), fma(log_rest, LOG2_E, times(log, LOG2_E_REST))
    )
    return _two_sum(scaled_exponent(k, a, offset), high, rest)


def _double(a: Expr, y: Expr) -> Expr:
    """`a**y` for positive finite f64 `a`."""
    log, rest = _log2_pair(a)
    exponent = clamp(y * log, *EXP2_RANGE[F64])
    rest = fma(y, log, -exponent) + y * rest
    h, scale = rounded_power(exponent, 0.5)
    within = absolute(rest) < 1.0
    r = fma(h, -2.0, exponent) + select(within, rest, literal(0.0, F64))
    return polynomial(r, EXP2[F64]) * scale * scale


def _for_zero_or_infinity(a: Expr, y: Expr, result: Expr) -> Expr:
    """`result`, except where `a` is zero or infinite."""
    zero, infinity = literal(0.0, a.dtype), literal(math.inf, a.dtype)
    grows = a.eq(0.0) ^ (zero < y)
    return select(a.eq(0.0) | a.eq(infinity), select(grows, infinity, zero), result)


def _for_negative(x: Expr, y: Expr, result: Expr) -> Expr:
    """The sign of an odd power of a negative `x`, NaN where `y` is no integer."""
    whole = call("floor", y).eq(y)
    half = y * 0.5
    odd = whole & call("floor", half).ne(half)
    below = (x < 0.0) & (literal(-math.inf, x.dtype) < x)
    real_power = where_nan(below & whole.eq(False), result)
    return select(odd, copysign(real_power, x), real_power)


def _root(x: Expr) -> Expr:
    """`x**0.5`: other than `sqrt` it is never minus zero, and infinite for minus infinity."""
    infinity = literal(math.inf, x.dtype)
    return select(x.eq(literal(-math.inf, x.dtype)), infinity, sqrt(x + 0.0))


def _inverse(x: Expr) -> Expr:
    return literal(1.0, x.dtype) / x


# Exponents that need no logarithm.
SPECIAL_EXPONENTS: dict[float, Callable[[Expr], Expr]] = {
    -2.0: lambda x: _inverse(x) * _inverse(x),
    -1.0: _inverse,
    -0.5: lambda x: _inverse(_root(x)),
    0.5: _root,
    0.0: lambda x: literal(1.0, x.dtype),
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
}


def power(x: Expr, y: Expr) -> Expr:
    """`x` to the power of `y`, with the special cases of IEEE 754's `pow`."""
    if isinstance(y, Const) and y.value in SPECIAL_EXPONENTS:
        return SPECIAL_EXPONENTS[float(y.value)](x)
    a = absolute(x)
    # An infinite exponent times the logarithm zero would be NaN, and one is right for -1.
    limit = math.ldexp(1.0, 100)
    finite_y = clamp(y, -limit, limit)
    result = (_single if x.dtype == F32 else _double)(a, finite_y)
    result = _for_negative(x, y, _for_zero_or_infinity(a, y, result))
    result = where_nan(call("isnan", x) | call("isnan", y), result)
    return select(x.eq(1.0) | y.eq(0.0), literal(1.0, x.dtype), result)
