"""Arithmetic on elements, and activation functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.core.dtypes import BOOL, F32
from tilewright.frontends.torch.complex_math import angle
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext, ValueName
from tilewright.frontends.torch.convert.division import truncated
from tilewright.frontends.torch.convert.shape import expanded
from tilewright.frontends.torch.convert.whole_power import whole_power
from tilewright.frontends.torch.convert.widened import widened
from tilewright.ir.graph.nodes import Attrs
from tilewright.ops.elementwise.activation import AlphaAttrs, GeluAttrs, HardSigmoidAttrs
from tilewright.ops.traced_value import TracedValue

MAX_POWER_OF_TEN = 308
"""The greatest exponent of ten that a number of Python holds."""


def same(c: TorchContext, n: AtenCall) -> Result:
    """The operand as it is: copies have no meaning where nothing is written to."""
    return c.operand(n, next(iter(n.args.values())), n.dtype)


def unary(op: str, attrs: Callable[[AtenCall], Attrs] | None = None) -> Converter:
    """An operator on one tensor, in the type of its result."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x = c.operand(n, n["self"], n.dtype)
        return c.add(n, op, x) if attrs is None else c.add(n, op, x, attrs=attrs(n))

    return convert


def copy(c: TorchContext, n: AtenCall) -> Result:
    """The second operand, in the shape and type of the first."""
    return expanded(c, n, c.operand(n, n["src"], n.dtype), c.type(n["self"]).shape)


def sign(c: TorchContext, n: AtenCall) -> Result:
    """-1, 0 or 1; that of NaN is 0."""
    found = c.add(n, "sign", n["self"])
    if not n.dtype.is_float:
        return found
    return c.add(n, "where", c.add(n, "is_nan", found), c.constant(0, n.dtype), found)


def rounding(op: str) -> Converter:
    """An operator on floats that leaves integers as they are."""
    return lambda c, n: n["self"] if n.dtype.is_integer else c.add(n, op, n["self"])


def round_to_decimals(c: TorchContext, n: AtenCall) -> Result:
    """Rounded to so many decimals: scaled, rounded and scaled back, 16-bit types in f32."""
    decimals = n.get("decimals", 0)
    if n.dtype.is_integer or not decimals:
        return rounding("round")(c, n)
    wide = F32 if n.dtype.bits < 32 else n.dtype
    power = abs(decimals)
    # a power that the type cannot hold is infinite, and the result is no number: as in eager
    scale = c.constant(10.0**power if power <= MAX_POWER_OF_TEN else math.inf, wide)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    scaled = c.add(n, there, c.operand(n, n["self"], wide), scale)
    return c.cast(n, c.add(n, back, c.add(n, "round", scaled), scale), n.dtype)


def binary(op: str, on_bools: str = "") -> Converter:
    """An operator on two operands, in the type of its result; `alpha` multiplies the second."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        a, b = (c.operand(n, n[name], n.dtype) for name in ("self", "other"))
        alpha = n.get("alpha", 1)
        if alpha != 1:
            b = c.add(n, "mul", b, c.operand(n, alpha, n.dtype))
        return c.add(n, on_bools if n.dtype == BOOL and on_bools else op, a, b)

    return convert


def reverse_subtract(c: TorchContext, n: AtenCall) -> Result:
    """`other - alpha * self`."""
    a, b = (c.operand(n, n[name], n.dtype) for name in ("self", "other"))
    if n["alpha"] != 1:
        a = c.add(n, "mul", a, c.operand(n, n["alpha"], n.dtype))
    return c.add(n, "sub", b, a)


def truncate(c: TorchContext, n: AtenCall) -> Result:
    """Rounded toward zero."""
    return truncated(c, n, n["self"])


def power(c: TorchContext, n: AtenCall) -> Result:
    """A square is a product, which is exact, and so is any power of integers."""
    base, exponent = n["self"], n["exponent"]
    x = c.operand(n, base, n.dtype)
    if n.dtype.is_integer and isinstance(exponent, ValueName | int):
        return whole_power(c, n, x, exponent)
    if isinstance(exponent, int | float) and exponent == 2:
        return c.add(n, "mul", x, x)
    return c.add(n, "pow", x, c.operand(n, exponent, n.dtype))


def scaled_log(base: float) -> Converter:
    """The logarithm to another base."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        natural = c.add(n, "log", c.operand(n, n["self"], n.dtype))
        return c.add(n, "mul", natural, c.constant(1 / math.log(base), n.dtype))

    return convert


def exp2(c: TorchContext, n: AtenCall) -> Result:
    """2 to the power x."""
    return c.add(n, "pow", c.constant(2, n.dtype), c.operand(n, n["self"], n.dtype))


def log1p(c: TorchContext, n: AtenCall) -> Result:
    """`x * log(u) / (u - 1)` with `u = 1 + x`: the rounding of `u` cancels (Kahan)."""
    x, one = c.operand(n, n["self"], n.dtype), c.constant(1, n.dtype)
    u = c.add(n, "add", x, one)
    log, rest = c.add(n, "log", u), c.add(n, "sub", u, one)
    exact = c.add(n, "div", c.add(n, "mul", x, log), rest)
    unchanged = c.add(n, "equal", u, one)
    infinite = c.add(n, "equal", u, c.constant(math.inf, n.dtype))
    found = c.add(n, "where", infinite, u, exact)
    return c.add(n, "where", unchanged, x, found)


def expm1(c: TorchContext, n: AtenCall) -> Result:
    """`(u - 1) * x / log(u)` with `u = exp(x)`: the rounding of `u` cancels (Kahan)."""
    x, one = c.operand(n, n["self"], n.dtype), c.constant(1, n.dtype)
    u = c.add(n, "exp", x)
    less = c.add(n, "sub", u, one)
    exact = c.add(n, "div", c.add(n, "mul", less, x), c.add(n, "log", u))
    far = c.add(n, "greater", c.add(n, "abs", x), c.constant(5, n.dtype))
    found = c.add(n, "where", far, less, exact)
    return c.add(n, "where", c.add(n, "equal", u, one), x, found)


def clamp(c: TorchContext, n: AtenCall) -> Result:
    """Held between limits, which are numbers or tensors, or absent."""
    x = c.operand(n, n["self"], n.dtype)
    for name, op in (("min", "max"), ("min_val", "max"), ("max", "min"), ("max_val", "min")):
        limit: Any = n.get(name)
        if limit is not None:
            x = c.add(n, op, x, c.operand(n, limit, n.dtype))
    return x


def elu(c: TorchContext, n: AtenCall) -> Result:
    """`scale * (x if x > 0 else alpha * (exp(x * input_scale) - 1))`."""
    x, scale, inner = n["self"], n["scale"], n["input_scale"]
    if inner != 1:
        bent = c.add(n, "mul", x, c.constant(inner, n.dtype))
        bent = c.add(n, "elu", bent, attrs=AlphaAttrs(float(n["alpha"])))
        positive = c.add(n, "greater", x, c.constant(0, n.dtype))
        y = c.add(n, "where", positive, x, bent)
    else:
        y = c.add(n, "elu", x, attrs=AlphaAttrs(float(n["alpha"])))
    return y if scale == 1 else c.add(n, "mul", y, c.constant(scale, n.dtype))


def prelu(c: TorchContext, n: AtenCall) -> Result:
    """A slope for each channel; torch has shaped it to broadcast."""
    return c.add(n, "prelu", n["self"], n["weight"])


def softplus(c: TorchContext, n: AtenCall) -> Result:
    """`log(1 + exp(beta * x)) / beta`, beyond the threshold x itself."""
    x, beta = n["self"], n["beta"]
    scaled = x if beta == 1 else c.add(n, "mul", x, c.constant(beta, n.dtype))
    y = c.add(n, "softplus", scaled)
    y = y if beta == 1 else c.add(n, "div", y, c.constant(beta, n.dtype))
    far = c.add(n, "greater", scaled, c.constant(n["threshold"], n.dtype))
    return c.add(n, "where", far, x, y)


def atan2(c: TorchContext, n: AtenCall) -> Result:
    """The angle of the point (other, self)."""
    y, x = (TracedValue(c.g, c.operand(n, n[name], n.dtype)) for name in ("self", "other"))
    return angle(y, x).name


_SAME_NAME = (
    *("abs", "neg", "exp", "log", "sqrt", "rsqrt", "reciprocal", "erf", "sin", "cos"),
    *("tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("sigmoid", "relu"),
)
_COPIES = (
    *("aten.clone", "aten.alias", "aten.detach", "aten._to_copy", "aten.lift_fresh_copy"),
    *("aten.contiguous", "aten.to", "prims.convert_element_type", "aten.positive"),
    "aten.lift_fresh",
)

CONVERTERS: dict[str, Converter] = {
    **{name: same for name in _COPIES},
    **{f"aten.{name}": unary(name) for name in _SAME_NAME},
    **{f"aten.{name}": rounding(name) for name in ("floor", "ceil")},
    "aten.round": round_to_decimals,
    "aten.sign": sign,
    "aten.sgn": sign,
    "aten.copy": copy,
    "aten.trunc": truncate,
    "aten.add": binary("add", "or"),
    "aten.sub": binary("sub"),
    "aten.rsub": reverse_subtract,
    "aten.mul": binary("mul", "and"),
    "aten.maximum": binary("max", "or"),
    "aten.minimum": binary("min", "and"),
    "aten.pow": power,
    "aten.exp2": widened(exp2),
    "aten.log2": widened(scaled_log(2)),
    "aten.log10": widened(scaled_log(10)),
    "aten.log1p": widened(log1p),
    "aten.expm1": widened(expm1),
    "aten.atan2": widened(atan2),
    "aten.clamp": clamp,
    "aten.clamp_min": clamp,
    "aten.clamp_max": clamp,
    "aten.hardtanh": clamp,
    "aten.silu": unary("swish", lambda n: AlphaAttrs(1.0)),
    "aten.gelu": unary("gelu", lambda n: GeluAttrs(n["approximate"] == "tanh")),
    "aten.mish": unary("mish"),
    "aten.hardswish": unary("hard_swish"),
    "aten.hardsigmoid": unary("hard_sigmoid", lambda n: HardSigmoidAttrs(1 / 6, 0.5)),
    "aten.leaky_relu": unary("leaky_relu", lambda n: AlphaAttrs(float(n["negative_slope"]))),
    "aten.elu": elu,
    "aten.celu": unary("celu", lambda n: AlphaAttrs(float(n["alpha"]))),
    "aten.softplus": softplus,
    "aten._prelu_kernel": prelu,
}
