"""Arithmetic on elements, activation functions."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce, wraps

from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, simple
from tilewright.frontends.onnx.legacy_broadcast import broadcasting, prelu
from tilewright.ops.elementwise.activation import (
    AlphaAttrs,
    GeluAttrs,
    HardSigmoidAttrs,
    SeluAttrs,
    ShrinkAttrs,
)
from tilewright.ops.elementwise.arithmetic import CastAttrs, ModAttrs


def alpha(op: str, default: float) -> Converter:
    """An activation with the attribute `alpha`."""
    return simple(op, lambda n: AlphaAttrs(n.float_attr("alpha", default)))


def variadic(op: str) -> Converter:
    """An operator of any number of inputs, as a chain of ours from left to right."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        n.required(0)
        if len(n.inputs) == 1:
            return (c.add(n, "identity", n.input(0)),)
        return (reduce(lambda a, b: c.add(n, op, a, b), n.inputs),)

    return convert


def mean(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The sum of the inputs divided by their number."""
    (total,) = variadic("add")(c, n)
    count = c.constant(len(n.inputs), c.type(total).dtype)
    return (c.add(n, "div", total, count),)


def dividing(convert: Converter) -> Converter:
    """A division: of integers by 0 it is an error, as in ONNX Runtime."""

    @wraps(convert)
    def checked(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        divisor = n.required(1)
        known = c.constant_of(divisor)
        if not c.type(divisor).dtype.is_integer or (known is not None and known.all()):
            return convert(c, n)
        if known is not None:
            raise n.invalid("integer division by zero")
        if c.g.symbolic_value(divisor) is not None:  # sizes are checked where they are divided
            return convert(c, n)
        nonzero = c.add(n, "nonzero_divisor", divisor)
        return convert(c, replace(n, inputs=(n.inputs[0], nonzero)))

    return checked


def gelu(n: OnnxNode) -> GeluAttrs:
    """Which of the two formulas is meant."""
    kind = n.str_attr("approximate", "none")
    if kind not in ("none", "tanh"):
        raise n.invalid(f"approximate is {kind!r}", "one of none, tanh")
    return GeluAttrs(kind == "tanh")


def selu(n: OnnxNode) -> SeluAttrs:
    """Version 1 rounded the constants."""
    default = SeluAttrs() if n.opset >= 6 else SeluAttrs(1.6732, 1.0507)
    return SeluAttrs(n.float_attr("alpha", default.alpha), n.float_attr("gamma", default.gamma))


def clip(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The limits are inputs since version 11, and were attributes before."""
    dtype = c.type(n.required(0)).dtype
    limits = [n.input(1), n.input(2)]
    for i, name in enumerate(("min", "max")):
        if n.has_attr(name):
            limits[i] = c.constant(n.float_attr(name), dtype, name)
    while limits and not limits[-1]:
        limits.pop()
    return (c.add(n, "clip", n.input(0), *limits),)


_SAME_NAME = (
    *("Abs", "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "Sign", "Erf"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh"),
    *("Atanh", "Sigmoid", "Relu", "Softplus", "Softsign", "Mish", "Identity"),
)

CONVERTERS: dict[str, Converter] = {
    **{name: simple(name.lower()) for name in _SAME_NAME},
    **{name: broadcasting(name.lower()) for name in ("Add", "Sub", "Mul", "Pow")},
    "Div": dividing(broadcasting("div")),
    "PRelu": prelu,
    "HardSwish": simple("hard_swish"),
    "LeakyRelu": alpha("leaky_relu", 0.01),
    "Elu": alpha("elu", 1.0),
    "Celu": alpha("celu", 1.0),
    "ThresholdedRelu": alpha("thresholded_relu", 1.0),
    "Swish": alpha("swish", 1.0),
    "Selu": simple("selu", selu),
    "HardSigmoid": simple(
        "hard_sigmoid",
        lambda n: HardSigmoidAttrs(n.float_attr("alpha", 0.2), n.float_attr("beta", 0.5)),
    ),
    "Shrink": simple(
        "shrink", lambda n: ShrinkAttrs(n.float_attr("lambd", 0.5), n.float_attr("bias", 0.0))
    ),
    "Gelu": simple("gelu", gelu),
    "Mod": dividing(simple("mod", lambda n: ModAttrs(bool(n.int_attr("fmod", 0))))),
    "BitCast": simple("bitcast", lambda n: CastAttrs(n.dtype_attr("to"))),
    "Clip": clip,
    "Sum": variadic("add"),
    "Min": variadic("min"),
    "Max": variadic("max"),
    "Mean": mean,
}
