"""Quantized operators of com.microsoft: integer products scaled to floats, arithmetic on bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.arith.expr import const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, U8
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.convert.qlinear import integer_product
from tilewright.frontends.onnx.convert.quantize import dequantize_linear, quantize_linear
from tilewright.frontends.onnx.convert.slicing import add_slice
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs
from tilewright.ops.elementwise.activation import AlphaAttrs
from tilewright.ops.elementwise.logic import ShiftAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.ops.traced_value import where

DOMAIN = "com.microsoft"


def _real(c: OnnxContext, n: OnnxNode, first: int) -> NodeValue:
    """The number that a quantized operand, its scale and its zero point stand for."""
    x = traced(c, n, n.required(first)).cast(F32)
    if n.has_input(first + 2):
        x = x - traced(c, n, n.input(first + 2)).cast(F32)
    return x * traced(c, n, n.required(first + 1))


def _quantized(x: NodeValue, like: str, scale: str, zero: str) -> str:
    """A number in a quantization; the cast saturates."""
    c, n = x.g.c, x.g.n
    steps = (x / traced(c, n, scale)).apply("round")
    if zero:
        steps = steps + traced(c, n, zero).cast(F32)
    return steps.cast(c.type(zero or like).dtype).name


def elementwise(op: str) -> Converter:
    """Arithmetic on two quantized operands: each with scale and zero point, then the result's."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        y = _real(c, n, 0).apply(op, _real(c, n, 3))
        return (_quantized(y, n.required(0), n.required(6), n.input(7)),)

    return convert


def function(op: str, attrs: Callable[[OnnxContext, OnnxNode], Attrs] | None = None) -> Converter:
    """A function of one quantized operand, in the quantization of the result."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        y = _real(c, n, 0).apply(op, attrs=NO_ATTRS if attrs is None else attrs(c, n))
        return (_quantized(y, n.required(0), n.required(3), n.input(4)),)

    return convert


def _spatial(c: OnnxContext, n: OnnxNode) -> ReduceAttrs:
    rank = c.type(n.required(0)).rank
    if n.int_attr("channels_last", 0):
        return ReduceAttrs(tuple(range(1, rank - 1)), keepdims=True)
    return ReduceAttrs(tuple(range(2, rank)), keepdims=True)


def concat(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Tensors of different quantizations joined in one; scale and zero point of it come first."""
    count = (len(n.inputs) - 2) // 3
    parts = [_real(c, n, 2 + 3 * i).name for i in range(count)]
    joined = c.add(n, "concat", *parts, attrs=ConcatAttrs(n.int_attr("axis")))
    return (_quantized(traced(c, n, joined), n.required(2), n.required(0), n.required(1)),)


def matmul_nbits(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A product with weights of a few bits, several in a byte, with a scale a block of them."""
    bits, block = n.int_attr("bits", 4), n.int_attr("block_size")
    columns, depth = n.int_attr("N"), n.int_attr("K")
    if bits not in (2, 4, 8):
        raise n.unsupported(f"weights of {bits} bits", "2, 4 or 8")
    if n.has_input(4):
        raise n.unsupported("weights in another order (g_idx)", "leave it out")
    x, blocks = n.required(0), -(-depth // block)
    dtype = c.type(x).dtype
    w = traced(c, n, _unpacked(c, n, n.required(1), bits, (columns, blocks, block)))
    w = w.cast(dtype) - _zero_points(c, n, bits, columns, blocks)
    scale = add_reshape(c, n, n.required(2), tuple(map(const, (columns, blocks, 1))))
    w = w * traced(c, n, scale).cast(dtype)
    rows = add_reshape(c, n, w.name, (const(columns), const(blocks * block)))
    rows = add_slice(c, rows, {1: (const(0), const(depth), 1)}, "weights")
    transposed = c.add(n, "transpose", rows, attrs=TransposeAttrs((1, 0)))
    y = traced(c, n, c.add(n, "matmul", x, transposed))
    return ((y + traced(c, n, n.input(5)) if n.has_input(5) else y).name,)


def _unpacked(c: OnnxContext, n: OnnxNode, x: str, bits: int, shape: tuple[int, ...]) -> str:
    """Numbers of `bits` bits, the lowest of a byte first, without the rest of a row's last byte."""
    outer, parts = c.type(x).shape, 8 // bits
    column = traced(c, n, add_reshape(c, n, x, (*outer, const(1))))
    places = traced(c, n, c.constant(np.arange(parts) * bits, U8))
    digits = column.apply("bit_shift", places, attrs=ShiftAttrs(False))
    digits = digits.apply("bitwise_and", (1 << bits) - 1)
    flat = add_reshape(c, n, digits.name, (*outer[:-1], simplify(outer[-1] * parts)))
    wanted = tuple(map(const, shape))
    if len(wanted) == len(outer):
        flat = add_slice(c, flat, {len(outer) - 1: (const(0), wanted[-1], 1)}, "digits")
    return add_reshape(c, n, flat, wanted)


def _zero_points(c: OnnxContext, n: OnnxNode, bits: int, columns: int, blocks: int) -> NodeValue:
    """One a block of weights: packed like them, as floats, or in the middle of the range."""
    dtype = c.type(n.required(0)).dtype
    if not n.has_input(3):
        return traced(c, n, c.constant(1 << (bits - 1), dtype))
    zeros = n.input(3)
    if not c.type(zeros).dtype.is_float:
        row = -(-blocks * bits // 8)
        zeros = add_reshape(c, n, zeros, (const(columns), const(row)))
        zeros = _unpacked(c, n, zeros, bits, (columns, blocks))
    shaped = add_reshape(c, n, zeros, tuple(map(const, (columns, blocks, 1))))
    return traced(c, n, shaped).cast(dtype)


def _scaled(c: OnnxContext, n: OnnxNode, sums: str, factor: NodeValue, bias: str) -> str:
    y = traced(c, n, sums).cast(F32) * factor
    return (y + traced(c, n, bias) if bias else y).name


def matmul_integer_to_float(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """An integer product times both scales, and a bias."""
    sums = integer_product(c, n, n.required(0), n.required(1), (n.input(4), n.input(5)))
    factor = traced(c, n, n.required(2)) * traced(c, n, n.required(3))
    return (_scaled(c, n, sums, factor, n.input(6)),)


def dynamic_quantize_matmul(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The first operand is quantized to u8 by its own range, then as above."""
    x = traced(c, n, n.required(0))
    every = ReduceAttrs(tuple(range(c.type(x.name).rank)), keepdims=False)
    low = x.apply("reduce_min", attrs=every).apply("min", 0)
    high = x.apply("reduce_max", attrs=every).apply("max", 0)
    span = high - low
    scale = where(span.apply("equal", 0), span.number(1), span) / 255
    zero = (-low / scale).apply("round").cast(U8)
    bytes_ = ((x / scale).apply("round") + zero.cast(F32)).cast(U8)
    sums = integer_product(c, n, bytes_.name, n.required(1), (zero.name, n.input(3)))
    return (_scaled(c, n, sums, scale * traced(c, n, n.required(2)), n.input(4)),)


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::QLinearAdd": elementwise("add"),
    f"{DOMAIN}::QLinearMul": elementwise("mul"),
    f"{DOMAIN}::QLinearSigmoid": function("sigmoid"),
    f"{DOMAIN}::QLinearLeakyRelu": function(
        "leaky_relu", lambda c, n: AlphaAttrs(n.float_attr("alpha", 0.01))
    ),
    f"{DOMAIN}::QLinearGlobalAveragePool": function("reduce_mean", _spatial),
    f"{DOMAIN}::QLinearConcat": concat,
    f"{DOMAIN}::QuantizeLinear": quantize_linear,
    f"{DOMAIN}::DequantizeLinear": dequantize_linear,
    f"{DOMAIN}::MatMulNBits": matmul_nbits,
    f"{DOMAIN}::MatMulIntegerToFloat": matmul_integer_to_float,
    f"{DOMAIN}::DynamicQuantizeMatMul": dynamic_quantize_matmul,
}
