"""`sin`, `cos`, `tan` of f64: the angle is reduced to a sum of two numbers within pi / 4."""

from __future__ import annotations

from tilewright.arith.expr import Expr, select
from tilewright.core.dtypes import F64
from tilewright.finalize.math.payne_hanek import SMALLEST, huge_quarter_turns
from tilewright.finalize.math.primitive import (
    absolute,
    bits,
    fma,
    format_of,
    literal,
    polynomial,
    product,
    times,
)
from tilewright.finalize.math.trigonometric import is_odd, negated, with_sign_of

TWO_OVER_PI = 0.6366197723675814
# pi / 2 in three parts.
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
# (sin(r) / r - 1) / z and (cos(r) - 1 + z / 2) / z**2 in z = r**2 for |r| <= pi / 4.
SIN = (
    1.5895411341334788e-10,
    -2.5050734046118395e-08,
    2.7557313536607787e-06,
    -0.00019841269829354131,
    0.008333333333321837,
    -0.1666666666666663,
)
COS = (
    -1.135733464276672e-11,
    2.087567805501963e-09,
    -2.7557314014982804e-07,
    2.4801587288295176e-05,
    -0.0013888888888872186,
    0.04166666666666659,
)


def _moderate(a: Expr) -> tuple[Expr, Expr, Expr]:
    """`q`, `r` and its error with `a = q * pi / 2 + r`, for `a` up to `SMALLEST`."""
    rounder = literal(format_of(a).rounder, F64)
    held = fma(a, TWO_OVER_PI, rounder)
    n = held - rounder
    first, second, third = HALF_PI
    exact = fma(n, -first, a)
    middle = product(n, second)
    r = exact - middle
    rest = ((exact - r) - middle) - fma(n, second, -middle)
    return bits(held), r, fma(n, -third, rest)


def _huge(a: Expr) -> tuple[Expr, Expr, Expr]:
    """`q`, `r` and its error, for `a` from `SMALLEST` on."""
    q, d, d_rest = huge_quarter_turns(a)
    high, low = HALF_PI[:2]
    r = product(d, high)
    return q, r, fma(d, high, -r) + fma(d_rest, high, times(d, low))


def _sin_cos(x: Expr) -> tuple[Expr, Expr, Expr]:
    """The quarter turns, sine and cosine of the rest of `|x|`."""
    a = absolute(x)
    large = literal(SMALLEST, F64) <= a
    q, r, rest = (
        select(large, huge, usual) for huge, usual in zip(_huge(a), _moderate(a), strict=True)
    )
    # The angle of an infinite number is not a number.
    r = r + (a - a)
    z = r * r
    sine = r + fma(r * z, polynomial(z, SIN), rest)
    half = z * 0.5
    near = literal(1.0, F64) - half
    lost = (literal(1.0, F64) - near) - half
    return q, sine, near + (lost + fma(z * z, polynomial(z, COS), -(r * rest)))


def sin(x: Expr) -> Expr:
    """The sine."""
    q, s, c = _sin_cos(x)
    return with_sign_of(negated(select(is_odd(q), c, s), q), x)


def cos(x: Expr) -> Expr:
    """The cosine."""
    q, s, c = _sin_cos(x)
    return negated(select(is_odd(q), s, c), q + 1)


def tan(x: Expr) -> Expr:
    """The tangent."""
    q, s, c = _sin_cos(x)
    odd = is_odd(q)
    return with_sign_of(select(odd, -c, s) / select(odd, s, c), x)
