"""`erf` and the exact `gelu`, which is `x` times the normal distribution function."""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, maximum, minimum
from tilewright.core.dtypes import F32, F64
from tilewright.finalize.math.exponential import (
    LOG2_E,
    damped_exp_plus,
    rounded_power_halves,
    without_ln2,
)
from tilewright.finalize.math.primitive import absolute, copysign, fma, literal, polynomial

# From here on `erf` is 1.
ERF_RANGE = {F32: 3.93, F64: 5.95}
# log(1 - erf(x)) / x, without its value at 0, weighed so that
# `erf` has relative error 2**-27.9 and 2**-52.9.
ERF = {
    F32: (
        9.244002e-06,
        -0.00011756129,
        0.0006326539,
        -0.0016668749,
        0.00016042062,
        0.019152958,
        -0.10277778,
        -0.6366194,
        5.411835e-08,
    ),
    F64: (
        -1.180000038326528e-14,
        4.754803660665617e-13,
        -8.720850773622425e-12,
        9.547871110298183e-11,
        -6.810557608148825e-10,
        3.1528306304902272e-09,
        -7.780883627739993e-09,
        -8.377406269670357e-09,
        1.741112754154744e-07,
        -8.537524389107478e-07,
        2.4298577246252575e-06,
        -3.5647603080670513e-06,
        -2.7957906933459926e-06,
        2.9323482567741755e-05,
        -6.428997645921624e-05,
        -2.5955223688202057e-05,
        0.0005901468191638359,
        -0.0016962105315221194,
        0.00020919523056831023,
        0.019128446963037615,
        -0.10277260330005863,
        -0.6366197723676116,
        0.0,
    ),
}

# Below minus this `gelu` is zero.
GELU_RANGE = {F32: 14.6, F64: 38.7}
# `Phi(-a) = exp(-a**2 / 2) * R(a)` for the normal distribution function `Phi`; with `w = a / (a + K)`,
# `a * R(a)` is `K / 2 * (w + w**2 * T)` and `T` a polynomial in `w - CENTRE`. K / 2 is near the square
# root of two, so that K / 2 * exp(r) is from 1 to 2: then rounding errors weigh least.
K = 2.828125
CENTRE = {F32: 0.0, F64: 0.5}
GELU = {
    F32: (
        0.035192918,
        -0.16402201,
        0.26651505,
        -0.17089969,
        0.090913445,
        -0.12308477,
        -0.09329937,
        0.21117704,
        0.48614383,
        -1.2565179,
    ),
}
# K / 2 * exp(r) - 1 for |r| <= ln 2 / 2, error 2**-27.7.
GELU_EXP = {
    F32: (
        0.0019475998,
        0.0118346615,
        0.05892259,
        0.23567495,
        0.70703113,
        1.4140625,
        0.4140625,
    ),
}


def erf(x: Expr) -> Expr:
    """The error function, `1 - exp(log(1 - erf(x)))`."""
    a = minimum(absolute(x), literal(ERF_RANGE[x.dtype], x.dtype))
    log = fma(a, -2 / math.sqrt(math.pi), a * polynomial(a, ERF[x.dtype]))
    return copysign(damped_exp_plus(log, -1.0), x)


def gelu(x: Expr) -> Expr:
    """`x * Phi(x) = max(x, 0) - |x| * Phi(-|x|)`, accurate also where it is tiny.

    `Phi(-a)` is `exp(-a**2 / 2)` times a function that falls slowly.
    """
    a = minimum(absolute(x), literal(GELU_RANGE[x.dtype], x.dtype))
    w = a / (a + K)
    scaled = fma(w * w, polynomial(w - CENTRE[x.dtype], GELU[x.dtype]), w)
    square = a * a
    lost = fma(a, a, -square)
    n, first, second = rounded_power_halves(square, LOG2_E / -2)
    r = fma(lost, -0.5, without_ln2(square * -0.5, n))
    product = fma(scaled, polynomial(r, GELU_EXP[x.dtype]), scaled)
    return fma(-(product * first), second, maximum(x, 0.0))
