"""Quantised operators of com.microsoft: integer products scaled to floats, arithmetic on bytes."""

from __future__ import annotations

from tilewright.core.dtypes import F32, U8
from tilewright.frontends.onnx.context import Context, Converter, OnnxNode
from tilewright.frontends.onnx.convert.integer import integer_product
from tilewright.frontends.onnx.formula import Formula, where
from tilewright.ops.reduce import ReduceAttrs

DOMAIN = "com.microsoft"


def _real(c: Context, n: OnnxNode, first: int) -> Formula:
    """The number that a quantised operand, its scale and its zero point stand for."""
    x = Formula(c, n, n.required(first)).cast(F32)
    if n.has_input(first + 2):
        x = x - Formula(c, n, n.input(first + 2)).cast(F32)
    return x * Formula(c, n, n.required(first + 1))


def _quantized(x: Formula, like: str, scale: str, zero: str) -> str:
    """A number in a quantisation; the cast saturates."""
    c, n = x.c, x.n
    steps = (x / Formula(c, n, scale)).apply("round")
    if zero:
        steps = steps + Formula(c, n, zero).cast(F32)
    return steps.cast(c.type(zero or like).dtype).name


def elementwise(op: str) -> Converter:
    """Arithmetic on two quantised operands: each with scale and zero point, then the result's."""

    def convert(c: Context, n: OnnxNode) -> tuple[str, ...]:
        y = _real(c, n, 0).apply(op, _real(c, n, 3))
        return (_quantized(y, n.required(0), n.required(6), n.input(7)),)

    return convert


def activation(op: str) -> Converter:
    """A function of one quantised operand, in the quantisation of the result."""

    def convert(c: Context, n: OnnxNode) -> tuple[str, ...]:
        y = _real(c, n, 0).apply(op)
        return (_quantized(y, n.required(0), n.required(3), n.input(4)),)

    return convert


def _scaled(c: Context, n: OnnxNode, sums: str, factor: Formula, bias: str) -> str:
    y = Formula(c, n, sums).cast(F32) * factor
    return (y + Formula(c, n, bias) if bias else y).name


def matmul_integer_to_float(c: Context, n: OnnxNode) -> tuple[str, ...]:
    """An integer product times both scales, and a bias."""
    sums = integer_product(c, n, n.required(0), n.required(1), (n.input(4), n.input(5)))
    factor = Formula(c, n, n.required(2)) * Formula(c, n, n.required(3))
    return (_scaled(c, n, sums, factor, n.input(6)),)


def dynamic_quantize_matmul(c: Context, n: OnnxNode) -> tuple[str, ...]:
    """The first operand is quantised to u8 by its own range, then as above."""
    x = Formula(c, n, n.required(0))
    every = ReduceAttrs(tuple(range(c.type(x.name).rank)), keepdims=False)
    low = x.apply("reduce_min", attrs=every).apply("min", 0)
    high = x.apply("reduce_max", attrs=every).apply("max", 0)
    span = high - low
    scale = where(span.apply("equal", 0), span.number(1), span) / 255
    zero = (-low / scale).apply("round").cast(U8)
    bytes_ = ((x / scale).apply("round") + zero.cast(F32)).cast(U8)
    sums = integer_product(c, n, bytes_.name, n.required(1), (zero.name, n.input(3)))
    return (_scaled(c, n, sums, scale * Formula(c, n, n.required(2)), n.input(4)),)


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::QLinearAdd": elementwise("add"),
    f"{DOMAIN}::QLinearMul": elementwise("mul"),
    f"{DOMAIN}::QLinearSigmoid": activation("sigmoid"),
    f"{DOMAIN}::MatMulIntegerToFloat": matmul_integer_to_float,
    f"{DOMAIN}::DynamicQuantizeMatMul": dynamic_quantize_matmul,
}
