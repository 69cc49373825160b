"""Products of 8-bit integers: MatMulInteger and ConvInteger, and the forms that requantize.

A quantized value stands for `scale * (integer - zero point)`; sums are formed in i32.
"""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import const
from tilewright.core.dtypes import F32, I32
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.cast import convert
from tilewright.frontends.onnx.convert.conv import convolve
from tilewright.frontends.onnx.convert.matmul import as_matrices, reshaped
from tilewright.ops.reduction.channel_norm import per_channel
from tilewright.ops.reduction.reduce import ReduceAttrs


def _is_zero(c: OnnxContext, name: str) -> bool:
    """Whether a zero point is absent, or known to be zero."""
    data = c.constant_of(name) if name else None
    return not name or (data is not None and not np.any(data))


def _by_row(c: OnnxContext, n: OnnxNode, value: str) -> str:
    """A vector as a column, so that it counts rows; anything else as it is."""
    if c.type(value).rank != 1:
        return value
    return reshaped(c, n, value, (*c.type(value).shape, 1))


def _product(c: OnnxContext, n: OnnxNode, x: str, w: str, zeros: tuple[str, str]) -> str:
    """`(x - x0) (w - w0)` as the product of bytes less sums of rows and columns.

    So the product itself stays one of bytes, and what the columns of `w` sum to is often constant.
    """
    x0, w0 = zeros
    y = c.add(n, "matmul_i32acc", x, w)
    rows = c.cast(n, x, I32)
    if not _is_zero(c, x0):
        x0 = _by_row(c, n, c.cast(n, x0, I32))
        columns = c.add(n, "reduce_sum", c.cast(n, w, I32), attrs=ReduceAttrs((-2,)))
        y = c.add(n, "sub", y, c.add(n, "mul", columns, x0))
        rows = c.add(n, "sub", rows, x0)
    if not _is_zero(c, w0):
        rows = c.add(n, "reduce_sum", rows, attrs=ReduceAttrs((-1,)))
        y = c.add(n, "sub", y, c.add(n, "mul", rows, c.cast(n, w0, I32)))
    return y


def integer_product(c: OnnxContext, n: OnnxNode, x: str, w: str, zeros: tuple[str, str]) -> str:
    """The product of 8-bit operands less their zero points, `""` for none, in i32."""
    return as_matrices(c, n, x, w, lambda a, b: _product(c, n, a, b, zeros))


def matmul_integer(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """8-bit matrix product."""
    zeros = n.input(2), n.input(3)
    return (integer_product(c, n, n.required(0), n.required(1), zeros),)


def _centred(c: OnnxContext, n: OnnxNode, value: str, zero: str, rank: int) -> str:
    """An operand as i32 less its zero point: one for all, or one an output channel (axis 0)."""
    wide = c.cast(n, value, I32)
    if _is_zero(c, zero):
        return wide
    zero = c.cast(n, zero, I32)
    if c.type(zero).rank and c.type(zero).elements is not const(1):
        zero = per_channel(c.g, zero, rank + 1)
    return c.add(n, "sub", wide, zero)


def _convolution(c: OnnxContext, n: OnnxNode, x: tuple[str, str], w: tuple[str, str]) -> str:
    """Operands with their zero points; the padding is zero after subtraction."""
    rank = c.type(w[0]).rank
    return convolve(c, n, _centred(c, n, *x, rank), _centred(c, n, *w, rank))


def conv_integer(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """8-bit convolution."""
    return (_convolution(c, n, (n.required(0), n.input(2)), (n.required(1), n.input(3))),)


def _requantized(c: OnnxContext, n: OnnxNode, sums: str, factor: str, scale: int, zero: int) -> str:
    """Sums times `factor`, in the quantization of the result; the cast saturates."""
    target = c.type(n.required(zero)).dtype
    real = c.add(n, "mul", c.cast(n, sums, F32), factor)
    steps = c.add(n, "div", real, c.cast(n, n.required(scale), F32))
    if target.is_float:
        return convert(c, n, steps, target, saturate=True)
    steps = c.add(n, "round", steps)
    return c.cast(n, c.add(n, "add", steps, c.cast(n, n.required(zero), F32)), target)


def qlinear_matmul(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Matrix product of quantized operands; scales are one a tensor, a row or a column."""
    x, w = n.required(0), n.required(3)
    if c.type(x).dtype.is_float:  # whose zero points are zero
        sums = c.add(n, "matmul", c.cast(n, x, F32), c.cast(n, w, F32))
    else:
        sums = integer_product(c, n, x, w, (n.input(2), n.input(5)))
    rows = _by_row(c, n, c.cast(n, n.required(1), F32))
    factor = c.add(n, "mul", rows, c.cast(n, n.required(4), F32))
    return (_requantized(c, n, sums, factor, 6, 7),)


def qlinear_conv(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Convolution of quantized operands; the bias is i32 in units of both scales."""
    w = n.required(3)
    rank = c.type(w).rank
    sums = _convolution(c, n, (n.required(0), n.required(2)), (w, n.required(5)))
    if n.has_input(8):
        sums = c.add(n, "add", sums, per_channel(c.g, n.input(8), rank))
    factor = c.add(n, "mul", n.required(1), n.required(4))
    if c.type(factor).rank == 1 and c.type(factor).elements is not const(1):
        factor = per_channel(c.g, factor, rank)
    return (_requantized(c, n, sums, factor, 6, 7),)


CONVERTERS: dict[str, Converter] = {
    "MatMulInteger": matmul_integer,
    "ConvInteger": conv_integer,
    "QLinearMatMul": qlinear_matmul,
    "QLinearConv": qlinear_conv,
}
