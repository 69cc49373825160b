"""`sin`, `cos`, `tan`: the turn is reduced in f64 whatever the argument, f32 results are cast back.

`x` times 2/pi is an integer of quarter turns and a rest `d`. For large `x` the leading digits of
2/pi contribute whole turns only; leaving them out keeps the product exact. So there is one pair of
constants for each range of 26 exponents, and the arithmetic is the same in all of them.
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, binary, cast, select
from tilewright.core.dtypes import F32, F64
from tilewright.finalize.math.primitive import (
    absolute,
    bits,
    fma,
    format_of,
    from_bits,
    literal,
    polynomial,
    product,
)

# Up to this argument: 2/pi without what gives whole turns, as a number of few enough digits that
# the products' errors add up exactly, and the rest.
TWO_OVER_PI = (
    (2.0**51, 0.6366197723675814, -3.935735335036497e-17),
    (2.0**77, 1.0781392073056004e-08, -5.434184107743751e-25),
    (2.0**103, 7.166494911215067e-17, 1.018166438749971e-32),
    (2.0**128, 2.7653040394377357e-24, -5.297650908280439e-41),
)
# sin(d pi / 2) / d and cos(d pi / 2) in d**2 for |d| <= 0.76, relative error 2**-31.6 and 2**-36.0.
SIN = (
    0.00015525916978819017,
    -0.004679106974101517,
    0.07969207004520401,
    -0.6459640562236875,
    1.5707963262971885,
)
COS = (
    -2.4379952520897533e-05,
    0.0009187168528268667,
    -0.020863315511435977,
    0.2536694856126224,
    -1.233700549137332,
    1.0,
)


def _constants(a: Expr) -> tuple[Expr, Expr]:
    _, high, low = TWO_OVER_PI[-1]
    first: Expr = literal(high, F64)
    second: Expr = literal(low, F64)
    for limit, high, low in reversed(TWO_OVER_PI[:-1]):
        below = a < limit
        first = select(below, literal(high, F64), first)
        second = select(below, literal(low, F64), second)
    return first, second


def quarter_turns(a: Expr) -> tuple[Expr, Expr]:
    """The integer `q`, right in its low bits, and `d` with `a = (q + d) * pi / 2`."""
    first, second = _constants(a)
    turns = product(a, first)
    error = fma(a, first, -turns)
    rounder = literal(format_of(a).rounder, F64)
    held = turns + rounder
    whole = held - rounder
    return bits(held), fma(a, second, (turns - whole) + error)


def is_odd(q: Expr) -> Expr:
    """Whether bit 0 of `q` is set."""
    return binary("and", q, 1).ne(0)


def negated(value: Expr, q: Expr) -> Expr:
    """`value`, negated where bit 1 of `q` is set."""
    return from_bits(bits(value) ^ (binary("and", q, 2) << 62))


def with_sign_of(value: Expr, x: Expr) -> Expr:
    """`value`, negated where the sign bit of `x` is set."""
    f = format_of(x)
    sign = -1 << (f.integer.bits - 1)
    return from_bits(bits(value) ^ binary("and", bits(x), sign))


def _sin_cos(d: Expr) -> tuple[Expr, Expr]:
    z = d * d
    return d * polynomial(z, SIN), polynomial(z, COS)


def sin(x: Expr) -> Expr:
    """The sine."""
    q, d = quarter_turns(cast(F64, absolute(x)))
    s, c = _sin_cos(d)
    return with_sign_of(cast(F32, negated(select(is_odd(q), c, s), q)), x)


def cos(x: Expr) -> Expr:
    """The cosine."""
    q, d = quarter_turns(cast(F64, absolute(x)))
    s, c = _sin_cos(d)
    return cast(F32, negated(select(is_odd(q), s, c), q + 1))


def tan(x: Expr) -> Expr:
    """The tangent."""
    q, d = quarter_turns(cast(F64, absolute(x)))
    s, c = _sin_cos(d)
    odd = is_odd(q)
    return with_sign_of(cast(F32, select(odd, -c, s) / select(odd, s, c)), x)
