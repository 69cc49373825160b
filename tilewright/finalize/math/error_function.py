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
from tilewright.finalize.math.primitive import absolute, copysign, fma, literal, polynomial, product

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
# With the normal distribution function `Phi` and `w = a / (a + K)`, `a * Phi(-a)` is
# `K / 2 * w * exp(w * L - a**2 / 2)`, where `L` is a polynomial in `w - CENTRE`.
K = 2.5
CENTRE = {F32: 0.0, F64: 0.375}
GELU = {
    F32: (
        -0.14335887,
        0.4851986,
        -0.5470058,
        0.23958528,
        -0.105330475,
        -0.005087687,
        0.10264574,
        0.14277796,
        0.04234568,
        -0.35916743,
        -0.99471104,
    ),
    F64: (
        -0.527073556434644,
        1.673676270158093,
        -1.224711794967427,
        -0.7477824306911096,
        0.8110101259600563,
        0.18080984135162734,
        0.006603563929162392,
        0.0442994416707912,
        -0.1930638871412605,
        -0.22745362511853032,
        -0.010541236805791367,
        0.19706769178924288,
        0.1995451435212395,
        0.00635423801843966,
        -0.18160926415258838,
        -0.1719507519909179,
        0.019625140312908053,
        0.18362381900746144,
        0.13660669008886808,
        -0.07552553584290984,
        -0.20816722777152102,
        -0.07450644995530752,
        0.21254918249702806,
        0.2660632341620422,
        -0.249113663117476,
        -1.1141162427152238,
    ),
}
# K / 2 * exp(r) - 1 for |r| <= ln 2 / 2. That `K / 2 * exp(r)` is mostly above one makes the errors
# of the factor `w` weigh less.
GELU_EXP = {
    F32: (0.001735979, 0.010462828, 0.0520844, 0.20833135, 0.62499994, 1.25, 0.25),
    F64: (
        3.1236918482620465e-08,
        3.45388197489292e-07,
        3.4447023516551194e-06,
        3.100186394268491e-05,
        0.0002480158684197147,
        0.0017361111181365889,
        0.010416666666882748,
        0.05208333333315848,
        0.20833333333333007,
        0.6250000000000013,
        1.25,
        0.25,
    ),
}


def erf(x: Expr) -> Expr:
    """The error function, `1 - exp(log(1 - erf(x)))`."""
    a = minimum(absolute(x), literal(ERF_RANGE[x.dtype], x.dtype))
    log = fma(a, -2 / math.sqrt(math.pi), a * polynomial(a, ERF[x.dtype]))
    return copysign(damped_exp_plus(log, -1.0), x)


def gelu(x: Expr) -> Expr:
    """`x * Phi(x) = max(x, 0) - |x| * Phi(-|x|)`, accurate also where it is tiny.

    The error is below 3 ULP, for `x > -2` it is about 2.
    """
    a = minimum(absolute(x), literal(GELU_RANGE[x.dtype], x.dtype))
    w = a / (a + K)
    slope = polynomial(w - CENTRE[x.dtype], GELU[x.dtype])
    square = product(a, a)
    lost = fma(a, a, -square)
    n, first, second = rounded_power_halves(fma(square, -0.5, w * slope), LOG2_E)
    r = fma(w, slope, fma(lost, -0.5, without_ln2(square * -0.5, n)))
    scaled = fma(w, polynomial(r, GELU_EXP[x.dtype]), w)
    return fma(-(scaled * first), second, maximum(x, -0.0))
