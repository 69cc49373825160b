"""Bessel functions of the first and second kind, of orders 0 and 1.

Up to 8 by powers of the square; beyond by amplitudes of cosine and sine:
`sqrt(2 / (pi x)) * (P cos(v) - Q sin(v))` and `(P sin(v) + Q cos(v))`, with `v = x - pi / 4`, for
order 1 a quarter turn behind.
"""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, call, maximum, select
from tilewright.ir.graph.nodes import Attrs
from tilewright.ops.elementwise.define import Vjp, floats, row, unary_vjp
from tilewright.ops.elementwise.special.series import INF, NAN, double, polynomial, real
from tilewright.ops.traced_value import Value

# J0, J1 / x, Y0 and Y1 * x less their logarithms, of x * x / 32 - 1
_J0_NEAR = (
    4.0037632815796753e-13,
    -1.243301171273326e-11,
    3.3634475788173604e-10,
    -7.91532308295207e-09,
    1.5956109104549218e-07,
    -2.717749223632098e-06,
    3.8473197855944365e-05,
    -0.0004435459224311503,
    0.004058078989140991,
    -0.028472718610882047,
    0.14598884856759264,
    -0.5074680458471,
    1.0383794611437211,
    -0.8080888076696872,
    -0.6484692830871837,
    0.9303012472958572,
    0.04582966485981377,
)
_J1_NEAR = (
    -4.0045728425886457e-13,
    1.1658972367678622e-11,
    -2.943013798001659e-10,
    6.431190177265836e-09,
    -1.196708186787801e-07,
    1.8684526037206013e-06,
    -2.404574865968694e-05,
    0.0002494945813597261,
    -0.0020290394945705996,
    0.012456814392263375,
    -0.05474581821284722,
    0.15858376432721838,
    -0.2595948652859303,
    0.15151665143806636,
    0.08105866038589796,
    -0.05814382795599107,
)
_Y0_NEAR = (
    -8.840112096073101e-13,
    2.6926938054524057e-11,
    -7.13046146536789e-10,
    1.6390875014077404e-08,
    -3.2185078445935923e-07,
    5.3213188103997145e-06,
    -7.279541882454115e-05,
    0.000806158605961636,
    -0.00702574105727097,
    0.046367047681375125,
    -0.21895747096171628,
    0.6721770783431679,
    -1.0775477338215995,
    0.14412632369302475,
    1.6470964788745466,
    -0.8284358903604587,
    -0.382250654459425,
)
_Y1_NEAR = (
    2.717543044282637e-11,
    -7.720337022307412e-10,
    1.8946577891111098e-08,
    -4.0115690551233664e-07,
    7.196671451091582e-06,
    -0.00010761442420114265,
    0.0013143465680350947,
    -0.012772576425171179,
    0.09531754868505037,
    -0.5186005149827233,
    1.8854115964584246,
    -3.7712169400599755,
    1.2375581909565858,
    8.270069241206105,
    -7.040315490270002,
    -5.523762303064035,
    1.6276957099101803,
)

# P and Q * x, of 128 / (x * x) - 1
_P0 = (
    -1.0251790052831013e-13,
    3.455012974455743e-13,
    -1.0157485021065676e-12,
    4.674289307624388e-12,
    -2.491146535471666e-11,
    1.550640953808597e-10,
    -1.2121098178951377e-09,
    1.2803747743828764e-08,
    -2.0527448261170675e-07,
    6.137416081283524e-06,
    -0.0005363673192129672,
    0.9994572757882519,
)
_Q0 = (
    -4.0574096424030336e-14,
    1.0185094098694355e-13,
    -1.3137515498826537e-13,
    4.605060470396763e-13,
    -1.873640743543296e-12,
    6.951785915752245e-12,
    -2.8707211071105146e-11,
    1.3623497617833053e-10,
    -7.5763304988972e-10,
    5.146231602705606e-09,
    -4.534972837363434e-08,
    5.684971881753781e-07,
    -1.1817110661200976e-05,
    0.0005466519279475266,
    -0.12444091103610815,
)
_P1 = (
    -3.5455617466606254e-14,
    1.0923713653079462e-13,
    -2.6335760672461096e-13,
    1.0954826479277623e-12,
    -5.191158004646548e-12,
    2.72345126828134e-11,
    -1.713107485294131e-10,
    1.3602969253877949e-09,
    -1.4708512991275258e-08,
    2.453676633366693e-07,
    -7.9596946984383e-06,
    0.0008988049416705183,
    1.0009070262780821,
)
_Q1 = (
    -1.0759215471978615e-13,
    2.8960940831153833e-13,
    -4.91574062967655e-13,
    1.796964474573459e-12,
    -7.465104477698295e-12,
    3.1143942213346517e-11,
    -1.4816588916791194e-10,
    8.315586321594619e-10,
    -5.720890888840857e-09,
    5.136106815451932e-08,
    -6.633568561050814e-07,
    1.4569614809339924e-05,
    -0.0007697167057643706,
    0.3742149922195918,
)

_NEAR = {0: (_J0_NEAR, _Y0_NEAR), 1: (_J1_NEAR, _Y1_NEAR)}
_FAR = {0: (_P0, _Q0), 1: (_P1, _Q1)}


def _wave(order: int, x: Expr) -> tuple[Expr, Expr]:
    """Both functions from 8 on."""
    inverse = real(1) / x
    t = inverse * inverse * real(128) - real(1)
    p, q = (polynomial(c, t) for c in _FAR[order])
    q = q * inverse
    cos, sin = call("cos", x), call("sin", x)
    # the cosine and the sine of the angle less an eighth of a turn, times sqrt(2)
    c, s = cos + sin, sin - cos
    if order == 1:
        c, s = s, -c
    amplitude = call("sqrt", inverse * real(1 / math.pi))
    return (p * c - q * s) * amplitude, (p * s + q * c) * amplitude


def _first(order: int, size: Expr) -> Expr:
    """J of a number that is not negative."""
    t = size * size * real(1 / 32) - real(1)
    near = polynomial(_NEAR[order][0], t)
    near = near * size if order else near
    far = _wave(order, maximum(size, real(8)))[0]
    return select(size < real(8), near, far)


def _j0(_: Attrs, x: Expr) -> Expr:
    return _first(0, call("abs", x))


def _j1(_: Attrs, x: Expr) -> Expr:
    size = _first(1, call("abs", x))
    return select(x < real(0), -size, size)


def _second(order: int, x: Expr) -> Expr:
    """Y: minus infinity at 0, no number below."""
    t = x * x * real(1 / 32) - real(1)
    rest = polynomial(_NEAR[order][1], t)
    rest = rest / x if order else rest
    near = real(2 / math.pi) * call("log", x) * _first(order, x) + rest
    far = _wave(order, maximum(x, real(8)))[1]
    found = select(x < real(8), near, far)
    found = select(x.eq(real(0)), -INF, found)
    return select(x >= real(0), found, NAN)


def _y0(_: Attrs, x: Expr) -> Expr:
    return _second(0, x)


def _y1(_: Attrs, x: Expr) -> Expr:
    return _second(1, x)


def _spherical_j0(_: Attrs, x: Expr) -> Expr:
    """sin(x) / x; 0 of infinite numbers."""
    found = select(x.eq(real(0)), real(1), call("sin", x) / x)
    return select(call("isinf", x), real(0), found)


def _below(zero: str) -> Vjp:
    """The derivative of order 1: that of order 0 less itself divided by the argument."""
    return unary_vjp(lambda x, y, dy: dy * (x.apply(zero) - y / x))


def _spherical_slope(x: Value, y: Value, dy: Value) -> Value:
    return dy * (x.apply("cos") - y) / x


OPS = (
    row(
        "bessel_j0",
        double(_j0),
        floats,
        flops=120,
        vjp=unary_vjp(lambda x, y, dy: -(dy * x.apply("bessel_j1"))),
        doc="the Bessel function of the first kind of order 0",
    ),
    row(
        "bessel_j1",
        double(_j1),
        floats,
        flops=120,
        vjp=_below("bessel_j0"),
        doc="the Bessel function of the first kind of order 1",
    ),
    row(
        "bessel_y0",
        double(_y0),
        floats,
        flops=160,
        vjp=unary_vjp(lambda x, y, dy: -(dy * x.apply("bessel_y1"))),
        doc="the Bessel function of the second kind of order 0",
    ),
    row(
        "bessel_y1",
        double(_y1),
        floats,
        flops=160,
        vjp=_below("bessel_y0"),
        doc="the Bessel function of the second kind of order 1",
    ),
    row(
        "spherical_bessel_j0",
        double(_spherical_j0),
        floats,
        flops=20,
        vjp=unary_vjp(_spherical_slope),
        doc="sin(x) / x",
    ),
)
