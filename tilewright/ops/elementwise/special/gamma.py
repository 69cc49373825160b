"""The logarithm of the gamma function, its derivatives, and Hurwitz' zeta function."""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, call, minimum, select
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ops.elementwise.define import floats, row, unary_vjp
from tilewright.ops.elementwise.special.series import (
    INF,
    NAN,
    double,
    from_nearest,
    is_fraction,
    is_whole,
    polynomial,
    real,
)

# log(gamma(2 + t)) / (t * (1 + t)), whose zeros at 1 and 2 are taken out
_LGAMMA = (
    -8.190037783551156e-10,
    1.5818126337371086e-09,
    2.4694237633377504e-09,
    -4.358862409072515e-09,
    -8.952022836709702e-09,
    1.6327287432845006e-08,
    -7.860744687083056e-10,
    5.68873795385758e-09,
    -5.2038665332275675e-08,
    1.0444285443279689e-07,
    -1.861315818147291e-07,
    3.95720794275161e-07,
    -8.554816957122729e-07,
    1.8114769634727658e-06,
    -3.846514242663473e-06,
    8.221205092155423e-06,
    -1.76618554743359e-05,
    3.81690832831345e-05,
    -8.30950999467849e-05,
    0.00018255261441838105,
    -0.0004057073999387517,
    0.0009153769241238952,
    -0.0021081308338291313,
    0.004998641164623283,
    -0.012384192193374355,
    0.032965000621156974,
    -0.1003173016743539,
    0.42278433509846713,
)

# B(2k) / (2k (2k - 1)): what Stirling's formula lacks, by odd powers of 1 / x
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
# B(2k) / 2k: what digamma has beyond its logarithm, by even powers of 1 / x
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
# B(2k) / (2k)!, from k = 1 on: the sum of Euler and Maclaurin
_MACLAURIN = (
    0.08333333333333333,
    -0.001388888888888889,
    3.306878306878307e-05,
    -8.267195767195768e-07,
    2.08767569878681e-08,
    -5.284190138687493e-10,
    1.3382536530684679e-11,
    -3.3896802963225827e-13,
    8.586062056277845e-15,
    -2.174868698558062e-16,
    5.5090028283602295e-18,
    -1.3954464685812522e-19,
)
_LARGEST = 1e6
"""Exponents beyond leave nothing of the rest; their powers would be infinite."""
_SHIFTS = 10
"""Terms that are added one by one, so that the asymptotic series holds for the rest."""


@node
class PolygammaAttrs(Attrs):
    """Which derivative of digamma."""

    n: int


def _log_gamma_far(x: Expr) -> Expr:
    """From 8 on: Stirling's formula."""
    inverse = real(1) / x
    rest = polynomial(_STIRLING, inverse * inverse) * inverse
    half_log = real(0.5 * math.log(2 * math.pi) - 0.5)
    return (x - real(0.5)) * (call("log", x) - real(1)) + half_log + rest


def log_gamma_positive(x: Expr) -> Expr:
    """Of numbers above 0: one step up below 1, five up to 8."""
    is_small, is_near = x < real(1), x < real(3)
    near = select(is_small, x + real(1), x)
    bent = (near - real(1)) * (near - real(2)) * polynomial(_LGAMMA, near - real(2))
    stepped = x
    for k in range(1, 5):
        stepped = stepped * (x + real(k))
    is_far = x >= real(8)
    far = _log_gamma_far(select(is_far, x, x + real(5)))
    # one logarithm for both: what the steps have multiplied by
    steps = call("log", select(is_near, select(is_small, x, real(1)), stepped))
    found = select(is_near, bent, far) - select(is_far, real(0), steps)
    return select(call("isinf", x), x, found)


def _log_gamma(_: Attrs, x: Expr) -> Expr:
    """Below 0 by reflection; infinite at 0 and at negative integers."""
    is_below = x < real(0.5)
    above = log_gamma_positive(select(is_below, real(1) - x, x))
    sine = call("abs", call("sin", from_nearest(x) * real(math.pi)))
    reflected = real(math.log(math.pi)) - call("log", sine) - above
    found = select(is_below, reflected, above)
    pole = (x <= real(0)) & is_whole(x)
    return select(pole | call("isinf", x), INF, found)


def _digamma_positive(x: Expr) -> Expr:
    is_far = x >= real(_SHIFTS)
    w = select(is_far, x, x + real(_SHIFTS))
    inverse = real(1) / w
    square = inverse * inverse
    series = polynomial(_DIGAMMA, square) * square
    far = call("log", w) - inverse * real(0.5) - series
    steps = real(0)
    for k in range(_SHIFTS):
        steps = steps + real(1) / (x + real(k))
    return select(is_far, far, far - steps)


def _digamma(_: Attrs, x: Expr) -> Expr:
    """Below 0 by reflection; no number at negative integers, infinite at 0."""
    is_below = x < real(0)
    above = _digamma_positive(select(is_below, real(1) - x, x))
    reflected = above - real(math.pi) / call("tan", from_nearest(x) * real(math.pi))
    found = select(is_below, select(is_whole(x), NAN, reflected), above)
    return select(x.eq(real(0)), call("copysign", INF, -x), found)


def _zeta_positive(s: Expr, q: Expr) -> Expr:
    """The sum of `(q + k) ** -s` of `q > 0`: some terms, the rest by Euler and Maclaurin."""
    total = real(0)
    for k in range(_SHIFTS):
        total = total + call("pow", q + real(k), -s)
    w = q + real(_SHIFTS)
    last = call("pow", w, -s)
    tail = last * (w / (s - real(1)) + real(0.5))
    # each term is the one before by two factors more, which are taken out of all that follow
    inner, s = real(0), minimum(s, real(_LARGEST))
    for k in reversed(range(len(_MACLAURIN))):
        factor = s if k == 0 else (s + real(2 * k - 1)) * (s + real(2 * k)) / (w * w)
        inner = factor * (real(_MACLAURIN[k]) + inner)
    return total + tail + last / w * inner


def _zeta(_: Attrs, s: Expr, q: Expr) -> Expr:
    """At negative `q` terms on both sides of 0 are sums of their own; `s` must be whole there."""
    is_below = q < real(0)
    first = select(is_below, q - call("floor", q), q)
    between = _zeta_positive(s, real(1) - first) - _zeta_positive(s, real(1) - q)
    between = select(is_fraction(s * real(0.5)), -between, between)
    above = _zeta_positive(s, first)
    found = select(is_below, above + between, above)
    found = select((is_below & is_fraction(s)) | (s < real(1)), NAN, found)
    found = select((q <= real(0)) & is_whole(q) & (real(1) < s), INF, found)
    found = select(call("isinf", q) & (real(1) < s), select(is_below, NAN, real(0)), found)
    return select(s.eq(real(1)), INF, found)


def _polygamma(attrs: PolygammaAttrs, x: Expr) -> Expr:
    if attrs.n == 0:
        return _digamma(attrs, x)
    scale = math.factorial(attrs.n) * (1 if attrs.n % 2 else -1)
    return _zeta(attrs, real(attrs.n + 1), x) * real(scale)


OPS = (
    row(
        "lgamma",
        double(_log_gamma),
        floats,
        flops=80,
        vjp=unary_vjp(lambda x, y, dy: dy * x.apply("polygamma", attrs=PolygammaAttrs(0))),
        doc="the logarithm of the absolute value of the gamma function",
    ),
    row(
        "polygamma",
        double(_polygamma),
        floats,
        attrs=PolygammaAttrs,
        flops=200,
        vjp=lambda a, ins, y, dy: (dy * ins[0].apply("polygamma", attrs=PolygammaAttrs(a.n + 1)),),
        doc="the derivatives of the logarithm of the gamma function, from the first (n=0) on",
    ),
    row(
        "zeta",
        double(_zeta),
        floats,
        flops=600,
        vjp=lambda a, ins, y, dy: (
            None,
            -(dy * ins[0] * (ins[0] + 1).apply("zeta", ins[1])),
        ),
        doc="Hurwitz' zeta function, the sum of (q + k) ** -s",
    ),
)
