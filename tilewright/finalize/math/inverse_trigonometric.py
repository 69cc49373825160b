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
# Up to here `asin` is a polynomial. It is a little above cos(1), which keeps the angle that is
# doubled elsewhere below 1/2, where it is rounded more finely.
ASIN_SMALL = 0.541
# (asin(x) / x - 1) / z in z = x**2 <= ASIN_SMALL**2; asin has relative error 2**-26.0 and 2**-56.2.
ASIN = {
    F32: (0.047690198, 0.020872103, 0.04614654, 0.07489918, 0.16666883),
    F64: (
        0.045758009775820445,
        -0.04333566570849354,
        0.03851443484882186,
        -0.0036538344205789006,
        0.012857334487821363,
        0.011003863842468212,
        0.014032272294166996,
        0.017347042491288055,
        0.022372485389539357,
        0.03038193253099249,
        0.04464285739877224,
        0.07499999999723579,
        0.1666666666666771,
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


def _reduced_asin(x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Whether `|x|` is small, then `y`, `y**3` and `p` with `asin(y) = y + y**3 * p`.

    `y` is `|x|` there, elsewhere `sqrt((1 - |x|) / 2)`, with `asin(|x|) = pi / 2 - 2 asin(y)`.
    """
    a = absolute(x)
    small = a <= literal(ASIN_SMALL, x.dtype)
    y = select(small, a, sqrt(fma(a, -0.5, 0.5)))
    z = y * y
    return small, y, y * z, polynomial(z, ASIN[x.dtype])


def asin(x: Expr) -> Expr:
    """The inverse sine; NaN beyond one."""
    small, y, cube, p = _reduced_asin(x)
    high, low = HALF_PI[x.dtype]
    rest = select(small, literal(0.0, x.dtype), literal(low * -0.5, x.dtype))
    angle = y + fma(cube, p, rest)
    return copysign(select(small, angle, fma(angle, -2.0, high)), x)


def acos(x: Expr) -> Expr:
    """The inverse cosine; NaN beyond one."""
    small, y, cube, p = _reduced_asin(x)
    angle = fma(cube, p, y)
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
