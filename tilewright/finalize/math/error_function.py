"""`erf` and the exact `gelu`, which is `x` times the normal distribution function."""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, maximum, minimum
from tilewright.core.dtypes import F32, F64
from tilewright.finalize.math.exponential import (
    LOG2_E,
    damped_exp_plus,
    decay_slope,
    rounded_power,
)
from tilewright.finalize.math.primitive import absolute, copysign, fma, horner2, literal, times

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
# With the normal distribution function `Phi`, `s = a + K` and `w = a / s`, `a * Phi(-a)` is
# `w / 2 * (1 + R) * exp(-a**2 / 2)`, where `R` is a polynomial in `w - CENTRE`; 1 + R has relative
# error 2**-27.1 and 2**-55.3. A greater `K` needs fewer powers, but `1 + R` leaves one behind.
K = {F32: 1.5, F64: 2.0}
CENTRE = 0.375
GELU = {
    F32: (
        0.61932284,
        0.09981716,
        -0.39812225,
        -0.35323536,
        -0.19073296,
        0.06084011,
        0.32129467,
        0.3698942,
        0.051164865,
        -0.52016115,
        -0.65604246,
        0.32461667,
    ),
    F64: (
        8.828627024407764,
        -18.89905557992604,
        4.986755839809181,
        13.434763505959753,
        -7.613367874682088,
        -3.219502054340016,
        3.2432312421114835,
        -0.1187907808308291,
        -1.0172682852270503,
        0.022788467768401193,
        0.21396952843299683,
        0.1790023639003999,
        0.18330109822388266,
        0.0837879732256962,
        -0.07307280592274391,
        -0.18215100637047643,
        -0.1762004343489032,
        -0.05132793465618046,
        0.11959674065816879,
        0.21562526642039898,
        0.14224491175397627,
        -0.08092003352074037,
        -0.2811766296152088,
        -0.21589876697397134,
        0.1880004648596769,
        0.5385844558233639,
        0.01606381772528078,
        -1.3560320963031862,
        0.5129788930644319,
    ),
}
# 2 ln 2 as a number so short that its multiples are exact, and the rest.
TWO_LN2 = {
    F32: (1.38629150390625, 2.8572135e-06),
    F64: (1.3862943611197807, 1.0995846037416742e-13),
}
# A result is scaled with 2**n through 2**(n + MARGIN), which is not denormal even where the result
# is, so that the result is rounded once.
MARGIN = 64


def erf(x: Expr) -> Expr:
    """The error function, `1 - exp(log(1 - erf(x)))`."""
    a = minimum(absolute(x), literal(ERF_RANGE[x.dtype], x.dtype))
    log = fma(a, -2 / math.sqrt(math.pi), a * horner2(a, ERF[x.dtype]))
    return copysign(damped_exp_plus(log, -1.0), x)


def _gaussian(a: Expr) -> tuple[Expr, Expr]:
    """`r` and a power of two with `exp(-a**2 / 2) = exp(-r / 2) * power / 2**MARGIN`."""
    high, low = TWO_LN2[a.dtype]
    n, power = rounded_power(a * a, -LOG2_E / 2, exponent=MARGIN)
    return fma(n, low, fma(a, a, times(n, high))), power


def gelu(x: Expr) -> Expr:
    """`x * Phi(x) = max(x, 0) - |x| * Phi(-|x|)`, accurate also where it is tiny."""
    a = minimum(absolute(x), literal(GELU_RANGE[x.dtype], x.dtype))
    k = literal(K[x.dtype], x.dtype)
    s = a + k
    w = a / s
    rest = horner2(w - CENTRE, GELU[x.dtype])
    # An error of `s` changes the result by about that error times `rest`, as long as `rest` is
    # positive; f32 results end before the difference matters.
    effect = rest if x.dtype == F32 else maximum(rest, 0.0)
    rest = fma((s - k) - a, effect, rest)
    r, power = _gaussian(a)
    # (1 + rest) * exp(-r / 2) - 1
    factor = fma(decay_slope(r, 0.5), fma(rest, r, r), rest)
    return fma(fma(w, factor, w) * power, -(2.0 ** -(MARGIN + 1)), maximum(x, -0.0))
