"""Gradients of elementwise operators: activations, functions of one number, arithmetic, choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.graph.nodes import Attrs
from tilewright.ops.elementwise.activation import (
    AlphaAttrs,
    GeluAttrs,
    HardSigmoidAttrs,
    SeluAttrs,
    ShrinkAttrs,
)
from tilewright.ops.elementwise.arithmetic import ModAttrs
from tilewright.ops.elementwise.define import unary_vjp
from tilewright.ops.gradient.formula import Rule, total
from tilewright.ops.op import flat
from tilewright.ops.traced_value import TracedValue, Value, where


def _slope(rule: Callable[[Any, Value, Value], Value]) -> Rule:
    """The rule of a function of one number: its derivative from attributes, operand and result."""
    return lambda attrs, ins, y, dy: (dy * rule(attrs, ins[0], y),)


def _choice(condition: Value, yes: Value | float, no: Value | float) -> Value:
    """One of two values of the type of either; numbers are constants of it."""
    like = yes if isinstance(yes, TracedValue) else no
    assert isinstance(like, TracedValue)
    yes, no = (v if isinstance(v, TracedValue) else like.number(v) for v in (yes, no))
    return where(condition, yes, no)


def _masked(condition: Value, dy: Value) -> Value:
    return where(condition, dy, dy.number(0))


def _leaky_relu(attrs: AlphaAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    return (where(ins[0].apply("less", 0), dy * attrs.alpha, dy),)


def _prelu(_: Attrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value, Value]:
    x, slope = ins
    below = x.apply("less", 0)
    return where(below, dy * slope, dy), _masked(below, dy * x)


def _elu(attrs: AlphaAttrs, x: Value, y: Value) -> Value:
    return _choice(x.apply("greater", 0), 1, y + attrs.alpha)


def _selu(attrs: SeluAttrs, x: Value, y: Value) -> Value:
    return _choice(x.apply("greater", 0), attrs.gamma, y + attrs.alpha * attrs.gamma)


def _celu(attrs: AlphaAttrs, x: Value, y: Value) -> Value:
    return _choice(x.apply("greater", 0), 1, y / attrs.alpha + 1)


def _softsign(_: Attrs, x: Value, y: Value) -> Value:
    width = x.apply("abs") + 1
    return (width * width).apply("reciprocal")


def _hard_sigmoid(attrs: HardSigmoidAttrs, ins: Sequence[Value], y: Value, dy: Value) -> Any:
    inside = y.apply("greater", 0).apply("and", y.apply("less", 1))
    return (_masked(inside, dy * attrs.alpha),)


def _hard_swish(_: Attrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    x = ins[0]
    middle = where(x.apply("greater", 3), dy, dy * (x / 3 + 0.5))
    return (_masked(x.apply("greater_or_equal", -3), middle),)


def _gelu(attrs: GeluAttrs, x: Value, y: Value) -> Value:
    if not attrs.tanh:
        bell = (x * x * -0.5).apply("exp") * (1 / math.sqrt(2 * math.pi))
        return ((x * math.sqrt(0.5)).apply("erf") + 1) * 0.5 + x * bell
    # x * sigmoid(u), where u is twice what the hyperbolic tangent is taken of.
    scale, cubic = 2 * math.sqrt(2 / math.pi), 0.044715
    square = x * x
    share = ((square * cubic + 1) * x * scale).apply("sigmoid")
    return share + x * share * (1 - share) * ((square * (3 * cubic) + 1) * scale)


def _mish(_: Attrs, x: Value, y: Value) -> Value:
    t = x.apply("softplus").apply("tanh")
    return t + x * (1 - t * t) * x.apply("sigmoid")


def _swish(attrs: AlphaAttrs, x: Value, y: Value) -> Value:
    share = (x * attrs.alpha).apply("sigmoid")
    return share + y * (1 - share) * attrs.alpha


def _thresholded(attrs: AlphaAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    return (_masked(ins[0].apply("greater", attrs.alpha), dy),)


def _shrink(attrs: ShrinkAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    x = ins[0]
    low, high = x.apply("less", -attrs.lambd), x.apply("greater", attrs.lambd)
    return (_masked(low.apply("or", high), dy),)


def _clip(_: Attrs, ins: Sequence[Value | None], y: Value, dy: Value) -> tuple[Value | None, ...]:
    """A limit gets the gradients of the elements that it holds; one that is met holds none.

    The upper limit is applied last: elements above it are its own, whatever the lower one is.
    """
    x, low, high = (*ins, None, None)[:3]
    assert x is not None
    raised = x if low is None else x.apply("max", low)
    inside = where(raised.apply("greater", high), dy.number(0), dy) if high is not None else dy
    found: list[Value | None] = [inside, None, None]
    if low is not None:
        below = x.apply("less", low)
        found[0], found[1] = where(below, dy.number(0), inside), _limit(low, _masked(below, inside))
    if high is not None:
        found[2] = _limit(high, _masked(raised.apply("greater", high), dy))
    return tuple(found[: len(ins)])


def _limit(limit: Value, dy: Value) -> Value:
    """The sum of all elements in the shape of a limit, which has one element and any rank."""
    return total(dy, range(len(dy.shape)), keepdims=False).reshape(limit.shape)


def _pow(_: Attrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value, Value]:
    """An exponent of 0 has no slope at any base, a base of 0 none along exponents of 0 and more."""
    base, exponent = ins[0], ins[1].cast(dy.dtype)
    none, zero = exponent.apply("equal", 0), dy.number(0)
    slope = where(none, zero, exponent * base.apply("pow", exponent - 1))
    nothing = base.apply("equal", 0).apply("and", exponent.apply("greater_or_equal", 0))
    return dy * slope, dy * where(nothing, zero, y * base.apply("log"))


def _mod(_: ModAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value, Value]:
    """`a - b * q`, where the whole number `q` stays as it is."""
    a, b = ins
    return dy, -(dy * ((a - y) / b).apply("round"))


def _extreme(_: Attrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value, ...]:
    """All goes to the operand that is the greatest or least; one half to each where they tie."""
    a, b = ins
    half = where(a.apply("equal", b), dy * 0.5, dy)
    return tuple(_masked(x.apply("equal", y), half) for x in ins)


RULES: dict[str, Rule] = {
    "leaky_relu": _leaky_relu,
    "prelu": _prelu,
    "elu": _slope(_elu),
    "selu": _slope(_selu),
    "celu": _slope(_celu),
    "softsign": _slope(_softsign),
    "hard_sigmoid": _hard_sigmoid,
    "hard_swish": _hard_swish,
    "gelu": _slope(_gelu),
    "mish": _slope(_mish),
    "swish": _slope(_swish),
    "thresholded_relu": _thresholded,
    "shrink": _shrink,
    "clip": _clip,
    "pow": _pow,
    "mod": _mod,
    "min": _extreme,
    "max": _extreme,
    "rsqrt": unary_vjp(lambda x, y, dy: dy * (y * y * y) * -0.5),
    "tan": unary_vjp(lambda x, y, dy: dy * (y * y + 1)),
    "asin": unary_vjp(lambda x, y, dy: dy * (1 - x * x).apply("rsqrt")),
    "acos": unary_vjp(lambda x, y, dy: -(dy * (1 - x * x).apply("rsqrt"))),
    "atan": unary_vjp(lambda x, y, dy: dy / (x * x + 1)),
    "sinh": unary_vjp(lambda x, y, dy: dy * x.apply("cosh")),
    "cosh": unary_vjp(lambda x, y, dy: dy * x.apply("sinh")),
    "asinh": unary_vjp(lambda x, y, dy: dy * (x * x + 1).apply("rsqrt")),
    "acosh": unary_vjp(lambda x, y, dy: dy * ((x - 1) * (x + 1)).apply("rsqrt")),
    "atanh": unary_vjp(lambda x, y, dy: dy / (1 - x * x)),
    **dict.fromkeys(("sign", "floor", "ceil", "round"), flat),
    **dict.fromkeys(("equal", "less", "less_or_equal", "greater", "greater_or_equal"), flat),
    **dict.fromkeys(("and", "or", "xor", "not", "is_nan", "is_inf"), flat),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"), flat),
    **dict.fromkeys(("bit_shift", "nonzero_divisor"), flat),
}

_ANOTHER = "its slope is another function, which is not offered"
NO_GRADIENT = {
    "airy_ai": _ANOTHER,
    "bitcast": "bits that are read as another type have no slope",
    "chebyshev": _ANOTHER,
}
