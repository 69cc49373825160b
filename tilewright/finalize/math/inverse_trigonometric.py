"""`asin`, `acos`, `atan`, `atan2`: odd polynomials on a small interval, and symmetries."""

from __future__ import annotations

from tilewright.arith.expr import Expr, select
from tilewright.core.dtypes import F32, F64
from tilewright.finalize.math.primitive import (
    absolute,
    bits,
    copysign,
    fma,
    literal,
    polynomial,
    sqrt,
)

# pi / 2 as a number of the format and the rest.
HALF_PI = {
    F32: (1.5707963705062866, -4.371138828673793e-08),
    F64: (1.5707963267948966, 6.123233995736766e-17),
}
# (asin(x) / x - 1) / z in z = x**2 <= 1/4; asin has relative error 2**-27.6 and 2**-55.9.
ASIN = {
    F32: (0.04215734, 0.0241852, 0.045469105, 0.074953094, 0.16666752),
    F64: (
        0.03191216637536141,
        -0.016224101725304037,
        0.019528174166934628,
        0.00652800322153785,
        0.012169207741412948,
        0.013885235329312096,
        0.017359704908864456,
        0.022371758025583617,
        0.030381959139083817,
        0.04464285682823475,
        0.07500000000337192,
        0.16666666666665408,
    ),
}
# (atan(x) / x - 1) / z in z = x**2 <= 1; atan has relative error 2**-25.8 and 2**-54.7.
ATAN = {
    F32: (
        0.002920356,
        -0.016366346,
        0.043208793,
        -0.07551905,
        0.106658354,
        -0.14211008,
        0.19993767,
        -0.33333153,
    ),
    F64: (
        -2.0259203452517637e-05,
        0.0002230288278728763,
        -0.001164101158276653,
        0.0038560574099609757,
        -0.009184718028155913,
        0.016978257919783572,
        -0.0258270297231445,
        0.03406799761116888,
        -0.04092649752298387,
        0.046739551040754584,
        -0.05239235015431181,
        0.05877308333531396,
        -0.06665860480966414,
        0.07692212948648763,
        -0.09090901237365995,
        0.11111110678893603,
        -0.1428571427134141,
        0.19999999999755183,
        -0.3333333333333186,
    ),
}


def _odd(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    """`x + x * z * p(z)` with `z = x**2`."""
    z = x * x
    return fma(x * z, polynomial(z, coefficients), x)


def _minus_half_pi(a: Expr, factor: float) -> Expr:
    """`pi / 2 * factor - a`."""
    high, low = HALF_PI[a.dtype]
    return literal(high * factor, a.dtype) - (a - literal(low * factor, a.dtype))


def _reduced_asin(x: Expr) -> tuple[Expr, Expr, Expr]:
    """Whether `|x| <= 1/2`, then `y` and a small `c` with `asin(y) = y + c`.

    `y` is `|x|` there, elsewhere `sqrt((1 - |x|) / 2)`, with `asin(|x|) = pi / 2 - 2 asin(y)`.
    """
    a = absolute(x)
    small = a <= 0.5
    y = select(small, a, sqrt(fma(a, -0.5, 0.5)))
    z = y * y
    return small, y, y * z * polynomial(z, ASIN[x.dtype])


def asin(x: Expr) -> Expr:
    """The inverse sine; NaN beyond one."""
    small, y, c = _reduced_asin(x)
    high, low = HALF_PI[x.dtype]
    large = fma(y, -2.0, high) - fma(c, 2.0, -low)
    return copysign(select(small, y + c, large), x)


def acos(x: Expr) -> Expr:
    """The inverse cosine; NaN beyond one."""
    small, y, c = _reduced_asin(x)
    angle = y + c
    double = angle + angle
    near_one = select(x < 0.0, _minus_half_pi(double, 2.0), double)
    return select(small, _minus_half_pi(copysign(angle, x), 1.0), near_one)


def atan(x: Expr) -> Expr:
    """The inverse tangent."""
    a = absolute(x)
    large = literal(1.0, x.dtype) < a
    y = _odd(select(large, literal(1.0, x.dtype) / a, a), ATAN[x.dtype])
    return copysign(select(large, _minus_half_pi(y, 1.0), y), x)


def atan2(y: Expr, x: Expr) -> Expr:
    """The angle of the point `(x, y)`, from -pi to pi."""
    a, b = absolute(y), absolute(x)
    steep = b < a
    # Equal arguments, also two zeros and two infinities, have a quotient of one or of nothing.
    quotient = select(steep, b, a) / select(steep, a, b)
    diagonal = select(a.eq(0.0), literal(0.0, x.dtype), literal(1.0, x.dtype))
    angle = _odd(select(a.eq(b), diagonal, quotient), ATAN[x.dtype])
    right = select(steep, _minus_half_pi(angle, 1.0), angle)
    result = select(bits(x) < 0, _minus_half_pi(right, 2.0), right)
    return copysign(result, y)
