"""Random numbers: RandomUniform, RandomNormal, Bernoulli, Multinomial, and Dropout.

The generator is `ops.random.philox`'s, with a key made of the attribute `seed`; without it, of the
name of the node's output, so that two nodes differ. Either way every run gives the same numbers.
Dropout with a seed takes the Mersenne Twister's.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np

from tilewright.arith.expr import Expr, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL, F32, I32, I64, STRING, DType
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.ops.random.mt19937 import Mt19937Attrs
from tilewright.ops.random.philox import RandomAttrs
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.reduction.softmax import SoftmaxAttrs
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.ops.tensor.manipulation import ExpandAttrs

# The attributes that give a distribution its two parameters, and their defaults.
_PARAMETERS = {"uniform": (("low", 0.0), ("high", 1.0)), "normal": (("mean", 0.0), ("scale", 1.0))}


def _key(n: OnnxNode) -> int:
    if n.has_attr("seed"):
        return int(np.float32(n.float_attr("seed")).view(np.uint32))
    return crc32(n.outputs[0].encode())


def _numbers(c: OnnxContext, n: OnnxNode, kind: str, shape: tuple[Expr, ...], dtype: DType) -> str:
    a, b = (n.float_attr(name, default) for name, default in _PARAMETERS[kind])
    return c.add(n, "random", attrs=RandomAttrs(shape, dtype, kind, a, b, _key(n)))


def of_shape(kind: str) -> Converter:
    """Random numbers of a shape that is an attribute."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        shape = tuple(const(d) for d in n.ints_attr("shape"))
        return (_numbers(c, n, kind, shape, n.dtype_attr("dtype", F32)),)

    return convert


def like(kind: str) -> Converter:
    """Random numbers of the shape of an input, and of its type if none is given."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        x = c.type(n.required(0))
        return (_numbers(c, n, kind, x.shape, n.dtype_attr("dtype", x.dtype)),)

    return convert


def bernoulli(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """1 with the probability that the input is; ONNX's own formula gives 0 with it."""
    x = n.required(0)
    shape, dtype = c.type(x).shape, c.type(x).dtype
    drawn = c.add(n, "random", attrs=RandomAttrs(shape, dtype, key=_key(n)))
    wanted = n.dtype_attr("dtype", dtype)
    if wanted == STRING:
        raise n.invalid("the result cannot be text", "give a type of numbers, or bool")
    return (c.cast(n, c.add(n, "less", drawn, x), wanted),)


def multinomial(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Classes drawn by their logarithmic weights: where the running sum passes a random number."""
    x = n.required(0)
    batch, classes = c.shape(n, x, 2)
    samples, dtype = n.int_attr("sample_size", 1), n.dtype_attr("dtype", I32)
    if samples < 1 or dtype not in (I32, I64):
        raise n.invalid(f"{samples} samples as {dtype}", "at least 1, as i32 or i64")
    c.require(n, const(0) < classes, f"{classes} classes")
    count = const(samples)
    chances = c.add(n, "softmax", c.cast(n, x, F32), attrs=SoftmaxAttrs(1))
    reached = c.add(n, "cumsum", chances, attrs=ScanAttrs(1))
    reached = add_reshape(c, n, reached, (batch, const(1), classes))
    drawn = c.add(n, "random", attrs=RandomAttrs((batch, count, const(1)), key=_key(n)))
    passed = c.cast(n, c.add(n, "less_or_equal", reached, drawn), I64)
    chosen = c.add(n, "reduce_sum", passed, attrs=ReduceAttrs((2,), keepdims=False))
    # The running sum may end a little below 1.
    last = c.add(n, "dims", attrs=DimsAttrs((simplify(classes - 1),), ()))
    return (c.cast(n, c.add(n, "min", chosen, last), dtype),)


def dropout(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """In training each element is dropped with a given probability and the others are enlarged.

    Version 12 has an input that says whether this is training, versions before 7 an attribute; in
    between it never is.
    """
    x = n.required(0)
    dtype, shape = c.type(x).dtype, c.type(x).shape
    ratio = _ratio(c, n) if _is_training(c, n) else 0.0
    if ratio == 0:
        y, kept = c.add(n, "identity", x), c.constant(True, BOOL)
    else:
        drawn = _drawn(c, n, shape)
        kept = c.add(n, "greater_or_equal", drawn, c.constant(ratio, c.type(drawn).dtype))
        scale = c.constant(1 / (1 - ratio) if ratio < 1 else 0.0, dtype)
        y = c.add(n, "where", kept, c.add(n, "mul", x, scale), c.constant(0, dtype))
    if not n.wants(1):
        return (y,)
    mask = c.cast(n, kept, BOOL if n.opset >= 10 else dtype)
    return y, c.add(n, "expand", mask, attrs=ExpandAttrs(shape))


def _drawn(c: OnnxContext, n: OnnxNode, shape: tuple[Expr, ...]) -> str:
    """The numbers that decide what Dropout drops: by the Twister where there is a seed."""
    if not n.has_attr("seed"):
        return c.add(n, "random", attrs=RandomAttrs(shape, F32, key=_key(n)))
    attrs = Mt19937Attrs(product(shape), n.int_attr("seed") & 0xFFFFFFFF)
    return add_reshape(c, n, c.add(n, "mt19937", attrs=attrs), shape)


def _is_training(c: OnnxContext, n: OnnxNode) -> bool:
    if n.opset < 7:
        return not n.int_attr("is_test", 0)
    return n.has_input(2) and bool(c.scalar(n, 2))


def _ratio(c: OnnxContext, n: OnnxNode) -> float:
    if n.opset < 12:
        return n.float_attr("ratio", 0.5)
    return float(c.scalar(n, 1)) if n.has_input(1) else 0.5


CONVERTERS: dict[str, Converter] = {
    "RandomUniform": of_shape("uniform"),
    "RandomUniformLike": like("uniform"),
    "RandomNormal": of_shape("normal"),
    "RandomNormalLike": like("normal"),
    "Bernoulli": bernoulli,
    "Multinomial": multinomial,
    "Dropout": dropout,
}
