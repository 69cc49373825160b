"""Transposed convolution: every input element adds the kernel, times itself, to the output.

With constant weights it is plain convolutions (`polyphase`). Otherwise it is a matrix product
followed by `col2im`:

    products[n, (o, k), p] = sum over c of w[c, o, k] * x[n, c, p]
    y[n, o, p * stride + k * dilation - pad] += products[n, (o, k), p]

No zeros are inserted between or around elements: times an infinite weight they would be NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tilewright.arith.expr import Expr, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import DType
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulator
from tilewright.ops.conv.col2im import Col2ImAttrs
from tilewright.ops.conv.conv import ConvTransposeAttrs, conv_transpose_type
from tilewright.ops.conv.polyphase import convolve_phases
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.op import GraphOps, Op
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.padding import PadAttrs


def _conv_transpose(g: GraphOps, attrs: ConvTransposeAttrs, inputs: Sequence[str]) -> str:
    x, w = inputs
    if attrs.layout == "channels_first":
        return convolve_phases(g, attrs, x, w) or convolve_blocks(g, attrs, x, w)
    last = attrs.rank + 1
    x = g.add("transpose", x, attrs=TransposeAttrs((0, last, *range(1, last))))
    first = ConvTransposeAttrs(
        attrs.strides,
        attrs.pads,
        attrs.dilations,
        groups=attrs.groups,
        output_padding=attrs.output_padding,
    )
    y = _conv_transpose(g, first, (x, w))
    return g.add("transpose", y, attrs=TransposeAttrs((0, *range(2, last + 1), 1)))


def convolve_blocks(g: GraphOps, attrs: ConvTransposeAttrs, x: str, w: str) -> str:
    """The matrix product of weights and elements, and the sum of what meets in an output."""
    out = conv_transpose_type(attrs, [g.type(x), g.type(w)])
    y, kernel = _products(g, attrs, x, w), g.type(w).shape[2:]
    margins = list(map(_margin, attrs.output_padding, attrs.after, attrs.strides))
    beyond, after = [m.beyond for m in margins], [m.pad for m in margins]
    image = tuple(simplify(n - b) for n, b in zip(out.shape[2:], beyond, strict=True))
    pads = (*attrs.before, *after)
    blocks = Col2ImAttrs(image, kernel, attrs.strides, pads, attrs.dilations)
    y = _cast(g, g.add("col2im", y, attrs=blocks), out.dtype)
    if not any(beyond):
        return y
    none, behind = (const(0),) * (attrs.rank + 2), tuple(map(const, (0, 0, *beyond)))
    return g.add("pad", y, attrs=PadAttrs(none, behind))


class _Margin(NamedTuple):
    """Zeros behind the image, or padding that cuts it off."""

    beyond: int
    pad: int


def _margin(extra: int, after: int, stride: int) -> _Margin:
    """How an axis ends; into `extra` of a stride or more, another block would fit."""
    if extra < stride:
        return _Margin(0, after)
    return _Margin(max(extra - after, 0), max(after - extra, 0))


def _products(g: GraphOps, attrs: ConvTransposeAttrs, x: str, w: str) -> str:
    """`[batch, out * taps, where]`, in the type that sums are formed in."""
    groups, (batch, channels, *sizes) = attrs.groups, g.type(x).shape
    group_in, taps = simplify(channels // groups), g.type(w).shape[1:]
    rows, where, many = simplify(product(taps)), simplify(product(tuple(sizes))), const(groups)
    real = accumulator(g.type(x).dtype)
    factor = _reshaped(g, _cast(g, w, real), many, group_in, rows)
    factor = g.add("transpose", factor, attrs=TransposeAttrs((0, 2, 1)))
    columns = _reshaped(g, _cast(g, x, real), batch, many, group_in, where)
    y = g.add("matmul", factor, columns)
    return _reshaped(g, y, batch, simplify(rows * groups), where)


def _reshaped(g: GraphOps, x: str, *shape: Expr) -> str:
    return g.add("reshape", x, attrs=ReshapeAttrs(shape))


def _cast(g: GraphOps, x: str, to: DType) -> str:
    return x if g.type(x).dtype == to else g.add("cast", x, attrs=CastAttrs(to))


def _flops(
    attrs: ConvTransposeAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Expr:
    return ins[0].elements * product(ins[1].shape[1:]) * const(2)


OPS = (
    Op(
        "conv_transpose",
        conv_transpose_type,
        "out_fusable",
        ConvTransposeAttrs,
        decompose=_conv_transpose,
        flops=_flops,
        doc="Transposed convolution without bias; weights are [in, out / groups, kernel...].",
    ),
)
