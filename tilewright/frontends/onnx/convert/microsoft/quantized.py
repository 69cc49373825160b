"""Quantized operators of com.microsoft: integer products scaled to floats, arithmetic on bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.core.dtypes import F32, U8
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.microsoft.attention import self_attention
from tilewright.frontends.onnx.convert.microsoft.channels_last import channels_last
from tilewright.frontends.onnx.convert.microsoft.fused import embedded, places
from tilewright.frontends.onnx.convert.norm import CONVERTERS as NORM
from tilewright.frontends.onnx.convert.pool import average_pool as plain_average_pool
from tilewright.frontends.onnx.convert.qlinear import integer_product, qlinear_conv
from tilewright.frontends.onnx.convert.quantize import dequantize_linear, quantize_linear
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs
from tilewright.ops.elementwise.activation import AlphaAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
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


def _scaled(c: OnnxContext, n: OnnxNode, sums: str, factor: NodeValue, bias: str) -> str:
    y = traced(c, n, sums).cast(F32) * factor
    return (y + traced(c, n, bias) if bias else y).name


def matmul_integer_to_float(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """An integer product times both scales, and a bias."""
    sums = integer_product(c, n, n.required(0), n.required(1), (n.input(4), n.input(5)))
    factor = traced(c, n, n.required(2)) * traced(c, n, n.required(3))
    return (_scaled(c, n, sums, factor, n.input(6)),)


def quantized_by_range(
    x: NodeValue, ranged: NodeValue | None = None
) -> tuple[NodeValue, NodeValue, NodeValue]:
    """A tensor as u8 by the range of its elements, or of another's; its scale and zero point."""
    of = x if ranged is None else ranged
    every = ReduceAttrs(tuple(range(len(of.shape))), keepdims=False)
    low = of.apply("reduce_min", attrs=every).apply("min", 0)
    high = of.apply("reduce_max", attrs=every).apply("max", 0)
    span = high - low
    scale = where(span.apply("equal", 0), span.number(1), span) / 255
    zero = (-low / scale).apply("round").cast(U8)
    return ((x / scale).apply("round") + zero.cast(F32)).cast(U8), scale, zero


def dynamic_quantize_matmul(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The first operand is quantized to u8 by its own range, then as above."""
    x, scale, zero = quantized_by_range(traced(c, n, n.required(0)))
    sums = integer_product(c, n, x.name, n.required(1), (zero.name, n.input(3)))
    return (_scaled(c, n, sums, scale * traced(c, n, n.required(2)), n.input(4)),)


def where_(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """One of two quantized operands by a condition, in the quantization of the result."""
    chosen = where(traced(c, n, n.required(0)), _real(c, n, 1), _real(c, n, 4))
    return (_quantized(chosen, n.required(1), n.required(7), n.input(8)),)


def softmax(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Softmax of a quantized operand; `opset` says along which axes."""
    real = _real(c, n, 0).name
    plain = replace(n, inputs=(real,), opset=n.int_attr("opset"))
    (y,) = NORM["Softmax"](c, plain)
    return (_quantized(traced(c, n, y), n.required(0), n.required(3), n.input(4)),)


def average_pool(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Means of windows of a quantized operand."""
    (y,) = plain_average_pool(c, replace(n, inputs=(_real(c, n, 0).name,)))
    return (_quantized(traced(c, n, y), n.required(0), n.required(3), n.input(4)),)


def qgemm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """`alpha * A' B' + C` of quantized operands; C is i32 in units of the product's scale.

    The result is f32 if it has no scale.
    """
    operands = [n.required(0), n.required(3)]
    for i, name in enumerate(("transA", "transB")):
        if n.int_attr(name, 0):
            operands[i] = c.add(n, "transpose", operands[i], attrs=TransposeAttrs((1, 0)))
    sums = integer_product(c, n, operands[0], operands[1], (n.input(2), n.input(5)))
    if n.has_input(6):
        sums = c.add(n, "add", sums, n.input(6))
    factor = traced(c, n, n.required(1)) * traced(c, n, n.required(4))
    alpha = n.float_attr("alpha", 1.0)
    y = traced(c, n, sums).cast(F32) * (factor * alpha if alpha != 1 else factor)
    return (_quantized(y, n.required(8), n.input(7), n.input(8)) if n.has_input(7) else y.name,)


def attention(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Attention whose queries, keys and values are a product of bytes."""
    sums = integer_product(c, n, n.required(0), n.required(1), (n.input(6), n.input(7)))
    factor = traced(c, n, n.required(3)) * traced(c, n, n.required(4))
    rows = _scaled(c, n, sums, factor, n.required(2))
    return self_attention(c, n, rows, (n.input(5), ""), n.input(8))


def embed_layer_norm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Embeddings as bytes; scales follow at input 8, zero points at 13."""

    def real(index: int, scale: int, rows: str = "") -> str:
        x = n.required(index)
        x = c.add(n, "gather", x, rows, attrs=GatherAttrs(0)) if rows else x
        moved = traced(c, n, x).cast(F32)
        if n.has_input(13 + scale):
            moved = moved - traced(c, n, n.input(13 + scale)).cast(F32)
        return (moved * traced(c, n, n.required(8 + scale))).name

    ids = n.required(0)
    found = [real(2, 0, ids), real(3, 1, places(c, n, c.shape(n, ids, 2)[1]))]
    if n.has_input(4):
        found.append(real(4, 2, n.required(1)))
    return embedded(c, n, found, (real(5, 3), real(6, 4)), n.input(7))


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::QLinearAdd": elementwise("add"),
    f"{DOMAIN}::QLinearMul": elementwise("mul"),
    f"{DOMAIN}::QLinearSigmoid": function("sigmoid"),
    f"{DOMAIN}::QLinearLeakyRelu": function(
        "leaky_relu", lambda c, n: AlphaAttrs(n.float_attr("alpha", 0.01))
    ),
    f"{DOMAIN}::QLinearGlobalAveragePool": function("reduce_mean", _spatial),
    f"{DOMAIN}::QLinearConcat": concat,
    f"{DOMAIN}::QLinearWhere": where_,
    f"{DOMAIN}::QLinearSoftmax": softmax,
    f"{DOMAIN}::QLinearAveragePool": channels_last(average_pool, when="channels_last"),
    f"{DOMAIN}::QLinearConv": channels_last(qlinear_conv, when="channels_last"),
    f"{DOMAIN}::QGemm": qgemm,
    f"{DOMAIN}::QAttention": attention,
    f"{DOMAIN}::QEmbedLayerNormalization": embed_layer_norm,
    f"{DOMAIN}::QuantizeLinear": quantize_linear,
    f"{DOMAIN}::DequantizeLinear": dequantize_linear,
    f"{DOMAIN}::MatMulIntegerToFloat": matmul_integer_to_float,
    f"{DOMAIN}::DynamicQuantizeMatMul": dynamic_quantize_matmul,
}
