"""Arithmetic on elements: functions of one number, broadcasting operators, conversion."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

import numpy as np

from tilewright.arith.expr import (
    Bitcast,
    Const,
    Expr,
    as_expr,
    binary,
    call,
    cast,
    const,
    maximum,
    minimum,
    select,
    unary,
)
from tilewright.core.dtypes import BOOL, F64, I64, U8, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.define import (
    Formula,
    anything,
    check_dtype,
    decided,
    floats,
    function,
    known,
    numbers,
    row,
    unary_vjp,
)
from tilewright.ops.op import broadcast_shapes, fail


@node
class CastAttrs(Attrs):
    """The element type to convert to."""

    to: DType


@node
class ModAttrs(Attrs):
    """`fmod`: the result has the sign of the dividend (C's `fmod`), else that of the divisor."""

    fmod: bool = False


def _op(name: str) -> Formula:
    return lambda _, a, b: binary(name, a, b)


def _abs(_: Attrs, x: Expr) -> Expr:
    if x.dtype.is_float:
        return call("abs", x)
    return x if x.dtype.kind == "uint" else select(x < 0, unary("neg", x), x)


def _sign(_: Attrs, x: Expr) -> Expr:
    if x.dtype.is_float:
        return call("sign", x)
    return select(x > 0, const(1, x.dtype), select(x < 0, const(-1, x.dtype), const(0, x.dtype)))


def _round(fn: str) -> Formula:
    return lambda _, x: call(fn, x) if x.dtype.is_float else x


def _pow_type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    base, exponent = ins
    check_dtype("pow", numbers, base.dtype)
    check_dtype("pow", numbers, exponent.dtype)
    return TensorType(base.dtype, broadcast_shapes("pow", base.shape, exponent.shape))


def _pow(_: Attrs, x: Expr, y: Expr) -> Expr:
    """The base's type decides; integers go through f64, so they are exact up to 2^53."""
    working = x.dtype if x.dtype.is_float else F64
    power = call("pow", cast(working, x), cast(working, y))
    if x.dtype.is_float:
        return power
    # A power of integers may come out a rounding below one, and a conversion cuts off.
    whole = call("round_even", power)
    near = call("abs", power - whole) <= call("abs", whole) * const(2.0**-50, F64)
    return cast(x.dtype, select(near, whole, power))


def _mod(attrs: ModAttrs, x: Expr, y: Expr) -> Expr:
    if attrs.fmod:
        return binary("rem", x, y)
    if not x.dtype.is_float:
        return binary("mod", x, y)
    rest, zero = binary("rem", x, y), const(0.0, x.dtype)
    other_sign = binary("ne", rest < zero, y < zero)
    return select(rest.ne(zero) & other_sign, rest + y, rest)


def _known_div(a: Expr, b: Expr) -> Expr:
    """Truncation differs from rounding down only below zero, where sizes are not."""
    return binary("div" if isinstance(a, Const) else "floordiv", a, b)


def _known_choice(op: str) -> Formula:
    """`min` or `max`, decided where one operand is the lesser for all sizes."""

    def choose(a: Expr, b: Expr) -> Expr:
        order = decided(binary("le", a, b))
        if not isinstance(order, Const):
            return binary(op, a, b)
        return a if bool(order.value) == (op == "min") else b

    return choose


def _known_cast(attrs: CastAttrs, values: Sequence[np.ndarray]) -> np.ndarray:
    def convert(e: Expr) -> Expr:
        if attrs.to == BOOL:
            return e if e.dtype == BOOL else decided(e.ne(0))
        return select(e, const(1), const(0)) if e.dtype == BOOL else cast(I64, e)

    return known(convert)(attrs, values)


def _cast_type(attrs: CastAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    if (x.dtype.kind == "complex") != (attrs.to.kind == "complex"):
        raise fail("cast", f"{x.dtype} is not converted to {attrs.to}")
    return TensorType(attrs.to, x.shape)


def _bitcast_type(attrs: CastAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    check_dtype("bitcast", anything, x.dtype)
    check_dtype("bitcast", anything, attrs.to)
    if x.dtype.bits != attrs.to.bits:
        raise fail("bitcast", f"elements of {x.dtype} and {attrs.to} differ in size")
    return TensorType(attrs.to, x.shape)


def _bitcast(attrs: CastAttrs, x: Expr) -> Expr:
    """A truth value is a byte of 0 or 1."""
    if BOOL in (x.dtype, attrs.to):
        byte = select(x, const(1, U8), const(0, U8)) if x.dtype == BOOL else x
        return byte.ne(0) if attrs.to == BOOL else _bits(attrs.to, byte)
    return _bits(attrs.to, x)


def _bits(to: DType, x: Expr) -> Expr:
    return x if x.dtype == to else Bitcast(to, x)


_FUNCTION_VJPS = {
    "exp": unary_vjp(lambda x, y, dy: dy * y),
    "log": unary_vjp(lambda x, y, dy: dy / x),
    "sqrt": unary_vjp(lambda x, y, dy: dy / (y * 2)),
    "erf": unary_vjp(lambda x, y, dy: dy * (-(x * x)).apply("exp") * (2 / sqrt(pi))),
    "sin": unary_vjp(lambda x, y, dy: dy * x.apply("cos")),
    "cos": unary_vjp(lambda x, y, dy: -(dy * x.apply("sin"))),
    "tanh": unary_vjp(lambda x, y, dy: dy * (1 - y * y)),
}

_FUNCTIONS = (
    ("exp", 10, "e to the power x"),
    ("log", 12, "the natural logarithm"),
    ("sqrt", 4, "the square root"),
    ("rsqrt", 5, "one over the square root"),
    ("erf", 20, "the error function"),
    ("sin", 15, "the sine"),
    ("cos", 15, "the cosine"),
    ("tan", 20, "the tangent"),
    ("asin", 20, "the inverse sine"),
    ("acos", 20, "the inverse cosine"),
    ("atan", 20, "the inverse tangent"),
    ("sinh", 20, "the hyperbolic sine"),
    ("cosh", 20, "the hyperbolic cosine"),
    ("tanh", 20, "the hyperbolic tangent"),
    ("asinh", 25, "the inverse hyperbolic sine"),
    ("acosh", 25, "the inverse hyperbolic cosine"),
    ("atanh", 25, "the inverse hyperbolic tangent"),
)

_ROUNDINGS = (
    ("floor", "floor", "rounded down"),
    ("ceil", "ceil", "rounded up"),
    ("round", "round_even", "rounded to the nearest integer, halves to the even one"),
)

UNARY = (
    row(
        "abs",
        _abs,
        propagate=known(lambda e: maximum(e, -e)),
        vjp=unary_vjp(lambda x, y, dy: dy * x.apply("sign")),
        doc="the absolute value",
    ),
    row(
        "neg",
        lambda _, x: unary("neg", x),
        propagate=known(lambda e: -e),
        vjp=unary_vjp(lambda x, y, dy: -dy),
        doc="the negative",
    ),
    row("sign", _sign, doc="-1, 0 or 1; NaN stays NaN"),
    row(
        "reciprocal",
        lambda _, x: as_expr(1, x.dtype) / x,
        floats,
        flops=4,
        vjp=unary_vjp(lambda x, y, dy: -(dy * y * y)),
        doc="one over x",
    ),
    *(
        row(name, function(name), floats, flops=cost, vjp=_FUNCTION_VJPS.get(name), doc=doc)
        for name, cost, doc in _FUNCTIONS
    ),
    *(row(name, _round(fn), propagate=known(lambda e: e), doc=doc) for name, fn, doc in _ROUNDINGS),
)

BINARY = (
    row(
        "add",
        _op("add"),
        propagate=known(lambda a, b: a + b),
        vjp=lambda _, ins, y, dy: (dy, dy),
        doc="the sum",
    ),
    row(
        "sub",
        _op("sub"),
        propagate=known(lambda a, b: a - b),
        vjp=lambda _, ins, y, dy: (dy, -dy),
        doc="the difference",
    ),
    row(
        "mul",
        _op("mul"),
        propagate=known(lambda a, b: a * b),
        vjp=lambda _, ins, y, dy: (dy * ins[1], dy * ins[0]),
        doc="the product",
    ),
    row(
        "div",
        _op("div"),
        propagate=known(_known_div),
        vjp=lambda _, ins, y, dy: (dy / ins[1], -(dy * y / ins[1])),
        doc="the quotient; integers truncate",
    ),
    row(
        "pow",
        _pow,
        infer=_pow_type,
        flops=30,
        doc="x to the power y, of the type of x",
    ),
    row(
        "mod",
        _mod,
        attrs=ModAttrs,
        propagate=known(lambda a, b: a % b),
        flops=5,
        doc="the remainder",
    ),
    row(
        "min",
        lambda _, a, b: minimum(a, b),
        propagate=known(_known_choice("min")),
        doc="the lesser",
    ),
    row(
        "max",
        lambda _, a, b: maximum(a, b),
        propagate=known(_known_choice("max")),
        doc="the greater",
    ),
)

CONVERSIONS = (
    row(
        "cast",
        lambda a, x: cast(a.to, x),
        infer=_cast_type,
        attrs=CastAttrs,
        propagate=_known_cast,
        flops=0,
        vjp=unary_vjp(lambda x, y, dy: dy.apply("cast", attrs=CastAttrs(x.dtype))),
        doc="converted to another element type",
    ),
    row(
        "bitcast",
        _bitcast,
        infer=_bitcast_type,
        attrs=CastAttrs,
        flops=0,
        doc="the same bits read as another element type",
    ),
    row(
        "identity",
        lambda _, x: x,
        anything,
        propagate=known(lambda e: e),
        flops=0,
        vjp=unary_vjp(lambda x, y, dy: dy),
        doc="itself",
    ),
)

OPS = (*UNARY, *BINARY, *CONVERSIONS)
