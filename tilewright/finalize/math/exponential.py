"""`exp`, `exp2`, `expm1`, `sigmoid`: a power of two times a polynomial.

`x` is `2 h ln 2 + r` with `h` an integer, so `exp(x)` is `exp(r) * 2**h * 2**h`: the two equal
factors let denormal results and overflow come out by themselves, and they are one shift away from
the number that rounded `h`.
"""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, maximum, minimum, select
from tilewright.core.dtypes import F32, F64
from tilewright.finalize.math.primitive import (
    absolute,
    bits,
    clamp,
    fma,
    format_of,
    from_bits,
    horner2,
    literal,
)

LOG2_E = 1.4426950408889634
# ln 2 as a number of the format and the rest.
LN2 = {
    F32: (0.6931471824645996, -1.9046542121259336e-09),
    F64: (0.6931471805599453, 2.3190468138462996e-17),
}
# Beyond these the result is 0 and infinity.
EXP_RANGE = {F32: (-104.0, 89.0), F64: (-746.0, 711.0)}
EXP2_RANGE = {F32: (-151.0, 129.0), F64: (-1076.0, 1025.0)}
# Below, the result of `expm1` is -1.
EXPM1_RANGE = {F32: (-18.0, 89.0), F64: (-38.0, 710.0)}
# Beyond these `sigmoid` is 0 and 1.
SIGMOID_RANGE = {F32: (-104.0, 40.0), F64: (-746.0, 80.0)}

# exp(r) for |r| <= ln 2, relative error 2**-26.0 and 2**-56.3; highest power first.
EXP = {
    F32: (
        0.00019621388,
        0.0014105141,
        0.008336005,
        0.041661214,
        0.16666616,
        0.50000036,
        1.0,
        1.0,
    ),
    F64: (
        1.591195078792628e-10,
        2.106277464019173e-09,
        2.505538066486643e-08,
        2.7556152826049005e-07,
        2.7557298726553626e-06,
        2.4801590851641558e-05,
        0.00019841269897724566,
        0.001388888888353972,
        0.008333333333264168,
        0.04166666666670231,
        0.1666666666666696,
        0.4999999999999993,
        1.0,
        1.0,
    ),
}
# 2**r for |r| <= 1, relative error 2**-25.2 and 2**-55.0.
EXP2 = {
    F32: (
        1.4063625e-05,
        0.00015628999,
        0.0013357678,
        0.009617035,
        0.055502787,
        0.24022664,
        0.69314736,
        1.0,
    ),
    F64: (
        1.2642538318353537e-12,
        2.5898153022298956e-11,
        4.449120933797711e-10,
        7.0546374192946946e-09,
        1.0178040766176994e-07,
        1.321548844399831e-06,
        1.5252734076011619e-05,
        0.00015403530388465923,
        0.001333355814563453,
        0.009618129107634875,
        0.05550410866483154,
        0.24022650695910047,
        0.693147180559945,
        1.0,
    ),
}
# (exp(r) - 1 - r) / r**2 for |r| <= ln 2 / 2; exp(r) - 1 has relative error 2**-31.0 and 2**-57.9.
EXPM1 = {
    F32: (0.00019667964, 0.0013935089, 0.008333639, 0.041666467, 0.16666666, 0.5),
    F64: (
        1.7028988847374929e-09,
        2.51051526748412e-08,
        2.757027387022157e-07,
        2.7557255679316704e-06,
        2.4801571493879738e-05,
        0.00019841269874571024,
        0.0013888888897324383,
        0.008333333333326125,
        0.04166666666664832,
        0.1666666666666667,
        0.5000000000000001,
    ),
}
# (exp(r) - 1 - r) / r**2 for |r| <= ln 2 / 2; exp(r) has relative error 2**-28.3.
EXP_REMAINDER = {F32: (0.0013814538, 0.008368745, 0.04166839, 0.16666521, 0.49999994)}
# How far `exp_nonpositive` raises its power of two, for the least result to be a normal number.
RAISED = 64
# (exp(-r) - 1) / r for |r| <= ln 2 / 2; exp(-r) has relative error 2**-28.3 and 2**-57.9.
DECAY = {
    F32: (0.0013821056, -0.008368675, 0.041668262, -0.16666521, 0.49999994, -1.0),
    F64: (
        -2.500676370264527e-08,
        2.763025149642519e-07,
        -2.7557560669110623e-06,
        2.4801493027376563e-05,
        -0.00019841269542683634,
        0.0013888888943817228,
        -0.008333333333472586,
        0.0416666666665285,
        -0.1666666666666646,
        0.5000000000000011,
        -1.0,
    ),
}


def rounded_power(x: Expr, factor: float, exponent: int = 0) -> tuple[Expr, Expr]:
    """`n = round(x * factor)` as a float, and `2**(n + exponent)`."""
    f = format_of(x)
    shift = literal(f.rounder + f.bias + exponent, f.dtype)
    held = fma(x, factor, shift)
    return held - shift, from_bits(bits(held) << f.mantissa)


def without_ln2(x: Expr, n: Expr, factor: float = 1.0) -> Expr:
    """`x - n * factor * ln 2`, exact but for the last rounding."""
    high, low = LN2[x.dtype]
    return fma(n, -factor * low, fma(n, -factor * high, x))


def expm1_near_zero(r: Expr) -> Expr:
    """`exp(r) - 1` for `|r| <= ln 2 / 2`."""
    return fma(r * r, horner2(r, EXPM1[r.dtype]), r)


def decay_slope(r: Expr, rate: float = 1.0) -> Expr:
    """`(exp(-rate * r) - 1) / r` for `|rate * r| <= ln 2 / 2`, where `rate` is a power of two."""
    coefficients = DECAY[r.dtype]
    count = len(coefficients)
    return horner2(r, [c * rate ** (count - i) for i, c in enumerate(coefficients)])


def exp_reduced(x: Expr) -> tuple[Expr, Expr]:
    """`r` and `s` with `exp(x) = exp(r) * s * s` and `|r| <= ln 2`."""
    h, s = rounded_power(x, LOG2_E / 2)
    return without_ln2(x, h, 2.0), s


def exp(x: Expr) -> Expr:
    """The exponential function."""
    r, s = exp_reduced(clamp(x, *EXP_RANGE[x.dtype]))
    return horner2(r, EXP[x.dtype]) * s * s


def exp_near_zero(r: Expr) -> Expr:
    """`exp(r)` for `|r| <= ln 2 / 2`, its terms summed in pairs.

    Where an addend must be copied first, that is fewer instructions.
    """
    c6, c5, c4, c3, c2 = EXP_REMAINDER[r.dtype]
    square = r * r
    tail = fma(square, c6, fma(r, c5, c4))
    return fma(square, fma(square, tail, fma(r, c3, c2)), r + 1.0)


def exp_ftz(x: Expr) -> Expr:
    """`exp(x)` where `x` is not above zero, as in attention; below the normal numbers it is 0."""
    if x.dtype not in EXP_REMAINDER:
        return exp(x)
    n, s = rounded_power(x, LOG2_E)
    value = exp_near_zero(without_ln2(x, n)) * s
    least = literal(math.log(format_of(x).smallest_normal), x.dtype)
    return select(x < least, literal(0.0, x.dtype), value)


def exp_nonpositive(x: Expr) -> Expr:
    """`exp(x)` where `x` is not above zero, as in a softmax.

    The power of two is a factor that is a normal number, and one that denormal results come from.
    """
    if x.dtype not in EXP_REMAINDER:
        return exp(x)
    x = maximum(x, literal(EXP_RANGE[x.dtype][0], x.dtype))
    n, s = rounded_power(x, LOG2_E, exponent=RAISED)
    return exp_near_zero(without_ln2(x, n)) * s * literal(2.0**-RAISED, x.dtype)


def exp2(x: Expr) -> Expr:
    """Two to the power of `x`."""
    x = clamp(x, *EXP2_RANGE[x.dtype])
    h, s = rounded_power(x, 0.5)
    return horner2(fma(h, -2.0, x), EXP2[x.dtype]) * s * s


def expm1_quarter(x: Expr) -> Expr:
    """`(exp(x) - 1) / 4`, which is finite a little beyond the range of `exp`."""
    n, s = rounded_power(x, LOG2_E, exponent=-2)
    return fma(expm1_near_zero(without_ln2(x, n)), s, s - 0.25)


def expm1(x: Expr) -> Expr:
    """`exp(x) - 1`, accurate near zero."""
    result = expm1_quarter(clamp(x, *EXPM1_RANGE[x.dtype])) * 4.0
    # A quarter of a denormal number is not exact, and minus zero would lose its sign.
    tiny = absolute(x) < literal(2.0 ** -(format_of(x).mantissa + 2), x.dtype)
    return select(tiny, x, result)


def damped_exp_plus(x: Expr, offset: float) -> Expr:
    """`exp(x) + offset` for `x` from -40 to 0, accurate also where that is near zero.

    One constant for ln 2 is enough: where `n` is large, its error is small against the offset.
    """
    n, s = rounded_power(x, LOG2_E)
    return fma(expm1_near_zero(fma(n, -LN2[x.dtype][0], x)), s, s + offset)


def sigmoid(x: Expr) -> Expr:
    """`1 / (1 + exp(-x))`, both sides scaled so that the denominator cannot overflow.

    With `exp(-x) = s + s * p` the denominator is `max(s, 1) + (min(s, 1) + s * p)`: the inner sum
    is small against the outer, while `s + 1` would lose the one where `s` is large.
    """
    x = clamp(x, *SIGMOID_RANGE[x.dtype])
    scale = format_of(x).mantissa + 1
    n, s = rounded_power(x, -LOG2_E, exponent=-scale)
    one = literal(2.0**-scale, x.dtype)
    r = without_ln2(x, n, -1.0)
    return one / (maximum(s, one) + fma(decay_slope(r), r * s, minimum(s, one)))
