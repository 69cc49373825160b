"""The hyperbolic functions and their inverses, by way of `expm1` and `log1p`."""

from __future__ import annotations

from tilewright.arith.expr import Expr, maximum, minimum, select
from tilewright.core.dtypes import F32, F64
from tilewright.finalize.math.exponential import (
    EXP,
    LN2,
    damped_exp_plus,
    exp_reduced,
    expm1_quarter,
)
from tilewright.finalize.math.logarithm import log1p
from tilewright.finalize.math.primitive import (
    absolute,
    copysign,
    fma,
    format_of,
    literal,
    polynomial,
    sqrt,
    where_nan,
)

# Twice the argument from which on `tanh` is 1.
TANH_RANGE = {F32: 20.0, F64: 40.0}
# A little more than the greatest argument with a finite `sinh` and `cosh`.
SINH_RANGE = {F32: 89.5, F64: 710.48}
# From here on adding one to a square, or to the number itself, changes nothing.
ONE_IS_NEGLIGIBLE = 2.0**60


def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent, `-t / (2 + t)` with `t = exp(-2 |x|) - 1`."""
    decay = maximum(absolute(x) * -2.0, literal(-TANH_RANGE[x.dtype], x.dtype))
    return copysign(damped_exp_plus(decay, -1.0) / damped_exp_plus(decay, 1.0), x)


def sinh(x: Expr) -> Expr:
    """The hyperbolic sine, `(t + t / (1 + t)) / 2` with `t = exp(|x|) - 1`."""
    a = absolute(x)
    quarter = expm1_quarter(minimum(a, literal(SINH_RANGE[x.dtype], x.dtype)))
    result = fma(quarter / fma(quarter, 4.0, 1.0), 2.0, quarter + quarter)
    tiny = a < literal(2.0 ** -(format_of(x).mantissa // 2 + 2), x.dtype)
    return select(tiny, x, copysign(result, x))


def cosh(x: Expr) -> Expr:
    """The hyperbolic cosine, from half of `exp(|x|)`."""
    r, s = exp_reduced(minimum(absolute(x), literal(SINH_RANGE[x.dtype], x.dtype)))
    half = polynomial(r, EXP[x.dtype]) * 0.5 * s * s
    return half + literal(0.25, x.dtype) / half


def _log1p_or_double(large: Expr, a: Expr, t: Expr) -> Expr:
    """`log(1 + t)`; where `a` is so large that it would overflow, `log(2 a)`."""
    ln2 = select(large, literal(LN2[a.dtype][0], a.dtype), literal(0.0, a.dtype))
    return log1p(select(large, a, t)) + ln2


def asinh(x: Expr) -> Expr:
    """The inverse hyperbolic sine."""
    a = absolute(x)
    square = a * a
    t = a + square / (sqrt(square + 1.0) + 1.0)
    return copysign(_log1p_or_double(literal(ONE_IS_NEGLIGIBLE, x.dtype) < a, a, t), x)


def acosh(x: Expr) -> Expr:
    """The inverse hyperbolic cosine; NaN below one."""
    above = x - 1.0
    t = above + sqrt(above * (above + 2.0))
    result = _log1p_or_double(literal(ONE_IS_NEGLIGIBLE, x.dtype) < x, x, t)
    return where_nan(x < 1.0, result)


def atanh(x: Expr) -> Expr:
    """The inverse hyperbolic tangent; NaN beyond one."""
    a = absolute(x)
    return copysign(log1p((a + a) / (literal(1.0, x.dtype) - a)) * 0.5, x)
