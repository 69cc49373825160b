"""Activation functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.arith.expr import Expr, call, cast, const, maximum, minimum, select
from tilewright.core.dtypes import F32
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.define import (
    check_dtype,
    floats,
    function,
    numbers,
    row,
    unary_vjp,
    wide,
)
from tilewright.ops.op import broadcast_shapes, fail, same_dtype
from tilewright.ops.traced_value import where


@node
class AlphaAttrs(Attrs):
    """The one parameter of an activation."""

    alpha: float


@node
class SeluAttrs(Attrs):
    """The scales of the negative part and of everything."""

    alpha: float = 1.6732632423543772
    gamma: float = 1.0507009873554805


@node
class HardSigmoidAttrs(Attrs):
    """Slope and offset of the middle part."""

    alpha: float = 0.2
    beta: float = 0.5


@node
class GeluAttrs(Attrs):
    """`tanh`: the approximation by a hyperbolic tangent rather than the error function."""

    tanh: bool = False


@node
class ShrinkAttrs(Attrs):
    """What is nearer to zero than `lambd` becomes zero, the rest moves towards it by `bias`."""

    lambd: float = 0.5
    bias: float = 0.0


def _k(value: float, like: Expr) -> Expr:
    return const(value, like.dtype)


def _relu(_: Attrs, x: Expr) -> Expr:
    return maximum(x, _k(0, x))


def _leaky_relu(a: AlphaAttrs, x: Expr) -> Expr:
    return select(x < 0, x * _k(a.alpha, x), x)


def _prelu(_: Attrs, x: Expr, slope: Expr) -> Expr:
    return select(x < 0, x * slope, x)


def _elu(a: AlphaAttrs, x: Expr) -> Expr:
    return select(x > 0, x, call("expm1", x) * _k(a.alpha, x))


def _selu(a: SeluAttrs, x: Expr) -> Expr:
    below = call("expm1", x) * _k(a.alpha * a.gamma, x)
    return select(x > 0, x * _k(a.gamma, x), below)


def _celu(a: AlphaAttrs, x: Expr) -> Expr:
    return select(x > 0, x, call("expm1", x / _k(a.alpha, x)) * _k(a.alpha, x))


def _softplus(_: Attrs, x: Expr) -> Expr:
    """`log(1 + exp(x))`, which this way overflows nowhere."""
    return maximum(x, _k(0, x)) + call("log1p", call("exp", -call("abs", x)))


def _softsign(_: Attrs, x: Expr) -> Expr:
    return x / (call("abs", x) + 1)


def _hard_sigmoid(a: HardSigmoidAttrs, x: Expr) -> Expr:
    return maximum(_k(0, x), minimum(_k(1, x), x * _k(a.alpha, x) + _k(a.beta, x)))


def _hard_swish(a: Attrs, x: Expr) -> Expr:
    return x * _hard_sigmoid(HardSigmoidAttrs(1 / 6, 0.5), x)


def _gelu(a: GeluAttrs, x: Expr) -> Expr:
    if not a.tanh:
        return call("gelu", x)
    # (1 + tanh(u)) / 2 is sigmoid(2 u), which does not cancel where tanh(u) is near -1.
    doubled = (x + x * x * x * _k(0.044715, x)) * _k(2 * math.sqrt(2 / math.pi), x)
    return x * call("sigmoid", doubled)


def _mish(_: Attrs, x: Expr) -> Expr:
    return x * call("tanh", _softplus(_, x))


def _swish(a: AlphaAttrs, x: Expr) -> Expr:
    return x * call("sigmoid", x if a.alpha == 1 else x * _k(a.alpha, x))


def _thresholded_relu(a: AlphaAttrs, x: Expr) -> Expr:
    return select(x > _k(a.alpha, x), x, _k(0, x))


def _shrink(a: ShrinkAttrs, x: Expr) -> Expr:
    """Integers are compared and moved as floats: the threshold may be a fraction."""
    v = x if x.dtype.is_float else cast(F32, x)
    low, high = v < _k(-a.lambd, v), v > _k(a.lambd, v)
    moved = select(low, v + _k(a.bias, v), select(high, v - _k(a.bias, v), _k(0, v)))
    return cast(x.dtype, moved)


def _clip(_: Attrs, x: Expr, low: Expr | None = None, high: Expr | None = None) -> Expr:
    raised = x if low is None else maximum(x, low)
    return raised if high is None else minimum(raised, high)


def _clip_type(_: Attrs, ins: Sequence[TensorType | None]) -> TensorType:
    x = ins[0]
    assert x is not None
    check_dtype("clip", numbers, x.dtype)
    same_dtype("clip", [t for t in ins if t is not None])
    for limit in ins[1:]:
        if limit is not None and any(d is not const(1) for d in limit.shape):
            raise fail("clip", f"a limit is {limit}", help="limits are scalars")
    return x


def _prelu_type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    x, slope = ins
    check_dtype("prelu", numbers, same_dtype("prelu", ins))
    if broadcast_shapes("prelu", x.shape, slope.shape) != x.shape:
        raise fail("prelu", f"slope {slope} does not broadcast to {x}")
    return x


OPS = (
    row(
        "relu",
        _relu,
        vjp=unary_vjp(lambda x, y, dy: where(x.apply("greater", 0), dy, dy.number(0))),
        doc="x where positive, else 0",
    ),
    row("leaky_relu", wide(_leaky_relu), floats, attrs=AlphaAttrs, flops=2, doc="relu with a leak"),
    row("prelu", _prelu, infer=_prelu_type, flops=2, doc="relu with a leak per channel"),
    row("elu", wide(_elu), floats, attrs=AlphaAttrs, flops=12, doc="exponential linear unit"),
    row("selu", wide(_selu), floats, attrs=SeluAttrs, flops=12, doc="scaled elu"),
    row("celu", wide(_celu), floats, attrs=AlphaAttrs, flops=13, doc="continuously smooth elu"),
    row(
        "sigmoid",
        function("sigmoid"),
        floats,
        flops=12,
        vjp=unary_vjp(lambda x, y, dy: dy * y * (1 - y)),
        doc="1 / (1 + exp(-x))",
    ),
    row(
        "softplus",
        wide(_softplus),
        floats,
        flops=24,
        vjp=unary_vjp(lambda x, y, dy: dy * x.apply("sigmoid")),
        doc="log(1 + exp(x))",
    ),
    row("softsign", wide(_softsign), floats, flops=5, doc="x / (1 + |x|)"),
    row(
        "hard_sigmoid",
        wide(_hard_sigmoid),
        floats,
        attrs=HardSigmoidAttrs,
        flops=4,
        doc="a line held between 0 and 1",
    ),
    row("hard_swish", wide(_hard_swish), floats, flops=5, doc="x times its hard sigmoid"),
    row("gelu", wide(_gelu), floats, attrs=GeluAttrs, flops=24, doc="Gaussian error linear unit"),
    row("mish", wide(_mish), floats, flops=45, doc="x * tanh(softplus(x))"),
    row("swish", wide(_swish), floats, attrs=AlphaAttrs, flops=14, doc="x * sigmoid(alpha * x)"),
    row(
        "thresholded_relu",
        _thresholded_relu,
        floats,
        attrs=AlphaAttrs,
        doc="x where it exceeds alpha, else 0",
    ),
    row("shrink", _shrink, attrs=ShrinkAttrs, flops=4, doc="moved towards zero"),
    row("clip", _clip, infer=_clip_type, flops=2, doc="held between two limits, if given"),
)
