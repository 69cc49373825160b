"""Chebyshev polynomials of the four kinds, of any degree, by angles.

From -1 to 1 with `x = cos(v)`, beyond with `x = cosh(v)`:

    T = cos(n v)                              U = sin((n + 1) v) / sin(v)
    V = cos((n + 1/2) v) / cos(v / 2)         W = sin((n + 1/2) v) / sin(v / 2)
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, call, select
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ops.elementwise.define import floats, row
from tilewright.ops.elementwise.special.series import double, is_fraction, real

KINDS = ("t", "u", "v", "w")
# Of an argument below zero V is W and W is V; all change their sign with odd degrees.
_MIRRORED = {"t": "t", "u": "u", "v": "w", "w": "v"}


@node
class ChebyshevAttrs(Attrs):
    """The kind; `shifted`: of 2 x - 1."""

    kind: str = "t"
    shifted: bool = False


def _parts(kind: str, n: Expr, v: Expr) -> tuple[Expr, Expr | None]:
    """What the function of an angle is taken of, above and below the line of the fraction."""
    half = real(0.5)
    return {
        "t": (n * v, None),
        "u": ((n + real(1)) * v, v),
        "v": ((n + half) * v, half * v),
        "w": ((n + half) * v, half * v),
    }[kind]


def _of_angle(kind: str, hyperbolic: str, n: Expr, v: Expr) -> Expr:
    """By sines or cosines; at the angle 0 a fraction of sines is that of what they are taken of."""
    function = ("cos" if kind in "tv" else "sin") + hyperbolic
    above, below = _parts(kind, n, v)
    if below is None:
        return call(function, above)
    found = call(function, above) / call(function, below)
    at_zero = {"u": n + real(1), "v": real(1), "w": n * real(2) + real(1)}[kind]
    return select(v.eq(real(0)), at_zero, found)


def _chebyshev(attrs: ChebyshevAttrs, x: Expr, n: Expr) -> Expr:
    n, one = call("trunc", n), real(1)
    x = x * real(2) - one if attrs.shifted else x
    is_negative, size = x < real(0), call("abs", x)
    angle, growth = (
        call("acos", select(size < one, size, one)),
        call("acosh", select(size < one, one, size)),
    )

    def of_size(kind: str) -> Expr:
        inside, outside = _of_angle(kind, "", n, angle), _of_angle(kind, "h", n, growth)
        return select(size <= one, inside, outside)

    mirrored = of_size(_MIRRORED[attrs.kind])
    mirrored = select(is_fraction(n * real(0.5)), -mirrored, mirrored)
    found = select(is_negative, mirrored, of_size(attrs.kind))
    found = select(call("isnan", x), x, found)
    return select(n < real(0), real(0), found)


OPS = (
    row(
        "chebyshev",
        double(_chebyshev),
        floats,
        attrs=ChebyshevAttrs,
        flops=150,
        doc="the Chebyshev polynomial of x of degree n",
    ),
)
