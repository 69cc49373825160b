"""The regularized incomplete gamma functions, by integrals of which one end is the argument.

With `t = x * exp(-v)` below the argument and `t = x * exp(v)` above it

    P(a, x) = factor * integral of exp(-a v - x (exp(-v) - 1)) over v from 0, where x <= a
    Q(a, x) = factor * integral of exp( a v - x (exp( v) - 1)) over v from 0, where x >= a
    factor = x ** a * exp(-x) / gamma(a)

Neither integrand grows. Of `v = scale * exp(u - exp(-u))` the trapezoidal rule over `u` converges
doubly exponentially (Takahasi and Mori).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from tilewright.arith.expr import Expr, call, cast, maximum, minimum, select
from tilewright.core.dtypes import F64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.define import broadcast_type, floats
from tilewright.ops.elementwise.special.gamma import log_gamma_positive
from tilewright.ops.elementwise.special.series import NAN, polynomial, real
from tilewright.ops.op import Op, broadcast_index
from tilewright.ops.traced_value import Value

NAME = "igamma"
POINTS = 256
"""Of the trapezoidal rule, from `LOW` to `HIGH`."""
LOW, HIGH = -3.8, 6.9
_STEP = (HIGH - LOW) / (POINTS - 1)
# From here on the factor is that of Stirling's formula, whose parts do not cancel.
_LARGE = 8
# 1 / (12 a) - ..., by odd powers of 1 / a: what Stirling's formula lacks
_STIRLING = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


@node
class IncompleteGammaAttrs(Attrs):
    """`upper`: the integral from the argument on, not up to it."""

    upper: bool = False


def _factor(a: Expr, x: Expr) -> Expr:
    """x ** a * exp(-x) / gamma(a)"""
    small = a * call("log", x) - x - log_gamma_positive(a)
    inverse = real(1) / maximum(a, real(_LARGE))
    apart = (x - a) * inverse
    lacks = polynomial(_STIRLING, inverse * inverse) * inverse
    bend = (call("log1p", apart) - apart) * a - lacks
    large = call("exp", bend) * call("sqrt", a * real(0.5 / math.pi))
    return select(a < real(_LARGE), call("exp", small), large)


def _terms(a: Expr, x: Expr, k: Expr) -> Expr:
    """One term of the trapezoidal rule."""
    below = x < a
    distance = select(below, a - x, x - a)
    root = call("sqrt", a)
    # how fast the integrand falls: along a slope, as a bell, beyond an end of its own
    scale = real(1) / (distance + select(below, minimum(a, root), root + real(1)))
    u = cast(F64, k) * real(_STEP) + real(LOW)
    shrunk = call("exp", -u)
    v = scale * call("exp", u - shrunk)
    width = v * (real(1) + shrunk) * real(_STEP)
    away = select(below, -v, v)
    integrand = call("exp", a * away - x * call("expm1", away))
    return width * integrand


def _known(attrs: IncompleteGammaAttrs, a: Expr, x: Expr, found: Expr) -> Expr:
    """Where one of both is 0 or infinite, or no number."""
    low, high = (real(1), real(0)) if attrs.upper else (real(0), real(1))
    none, endless = x.eq(real(0)), call("isinf", x)
    found = select(none, low, select(endless, high, found))
    found = select(call("isinf", a), select(endless, NAN, low), found)
    found = select(a.eq(real(0)), select(none, NAN, high), found)
    outside = (a < real(0)) | (x < real(0)) | call("isnan", a) | call("isnan", x)
    return select(outside, NAN, found)


def _igamma(
    b: Builder, attrs: IncompleteGammaAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    shape = outs[0].shape

    def operands(i: Sequence[Expr]) -> tuple[Expr, Expr]:
        a, x = (cast(F64, t.at(*broadcast_index(t.shape, i))) for t in ins)
        return a, x

    def integral(*i: Expr) -> Expr:
        return b.reduce("sum", (POINTS,), lambda k: _terms(*operands(i), k))

    total = b.compute("total", shape, integral)

    def element(*i: Expr) -> Expr:
        a, x = operands(i)
        part = _factor(a, x) * total.at(*i)
        is_lower = x < a
        other = real(1) - part
        found = select(is_lower, other, part) if attrs.upper else select(is_lower, part, other)
        return cast(outs[0].dtype, _known(attrs, a, x, found))

    return b.compute("y", shape, element)


def _vjp(
    attrs: IncompleteGammaAttrs, ins: Sequence[Value], y: Value, dy: Value
) -> tuple[None, Value]:
    a, x = ins
    slope = ((a - 1) * x.apply("log") - x - a.apply("lgamma")).apply("exp")
    return None, dy * (-slope if attrs.upper else slope)


OPS = (
    Op(
        NAME,
        partial(broadcast_type, NAME, floats, None),
        "reduction",
        IncompleteGammaAttrs,
        te=_igamma,
        vjp=_vjp,
        flops=POINTS * 60,
        doc="the regularized incomplete gamma functions of a and x; of a there is no gradient",
    ),
)
