"""Convolutions of integers that fit in 8 bits become such, which tensor cores compute (GPU).

    conv(i32(x) - 3, i32(w))   →   conv_i32acc(pad(x, 3), w) - 3 * sums of w

    x: u8[N, C, H, W], w: i8[O, C, kH, kW]

The image is padded by its zero point, as `3 - 3` is the zero that padding stands for: what the zero
point adds is then the same for all elements of a channel. Weights are constants less their zero
point, which must fit in 8 bits themselves. Groups stay in i32: few channels fill no instruction.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.arith.expr import const
from tilewright.core.dtypes import I8, I32, U8, DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.sliding_window import arrange
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

BYTES = (I8, U8)


def narrow_integer_convs(graph: Graph, context: PassContext) -> Graph:
    """Compute convolutions of bytes as such, with sums in i32."""
    return rewrite_graph(graph, _rule, of=("conv",))


def _rule(g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    if type(attrs) is not ConvAttrs or attrs.groups > 1 or n.type.dtype != I32:
        return None
    image, weights = _image(g, n.inputs[0]), _integers(g, n.inputs[1])
    if image is None or weights is None:
        return None
    x, zero = image
    narrow = next((dtype for dtype in BYTES if _fit(weights, dtype)), None)
    if narrow is None or not _fit(np.array(zero), g.type(x).dtype):
        return None
    w = g.constant(weights.astype(narrow.numpy))
    if zero == 0:
        return g.add("conv_i32acc", x, w, attrs=attrs)
    plain = replace(attrs, pads=(0,) * len(attrs.pads))
    y = g.add("conv_i32acc", _padded(g, x, zero, attrs), w, attrs=plain)
    sums = weights.sum(axis=tuple(range(1, weights.ndim))) * zero
    beside = arrange(attrs.layout, const(1), const(len(sums)), [const(1)] * attrs.rank)
    shape = [len(sums) if size is const(len(sums)) else 1 for size in beside]
    return g.add("sub", y, g.constant(sums.astype(np.int32).reshape(shape)))


def _image(g: Rewriter, value: str) -> tuple[str, int] | None:
    """The bytes that a value of i32 is made of, and their zero point."""
    made, zero = g.producer(value), np.zeros(1, np.int64)
    if made is not None and made.op == "sub":
        known = _integers(g, made.inputs[1])
        if known is None or known.size != 1:
            return None
        made, zero = g.producer(made.inputs[0]), known
    if made is None or made.op != "cast" or g.type(made.inputs[0]).dtype not in BYTES:
        return None
    return made.inputs[0], int(zero.reshape(()))


def _integers(g: Rewriter, value: str) -> np.ndarray | None:
    """The data of a constant, perhaps widened and less a zero point that is one, too."""
    data = g.constant_data(value)
    if data is not None:
        return data.astype(np.int64) if data.dtype.kind in "iu" else None
    made = g.producer(value)
    if made is None or made.op not in ("cast", "sub", "reshape"):
        return None
    known = [_integers(g, x) for x in made.inputs]
    parts = [data for data in known if data is not None]
    if len(parts) < len(known):
        return None
    if made.op == "sub":
        return np.asarray(parts[0] - parts[1])
    if made.op == "cast" and g.type(made.inputs[0]).dtype.bits >= made.type.dtype.bits:
        return None
    shape = [int(str(size)) for size in made.type.shape]
    return parts[0].reshape(shape)


def _fit(values: np.ndarray, dtype: DType) -> bool:
    limits = np.iinfo(dtype.numpy)
    return not values.size or bool(values.min() >= limits.min and values.max() <= limits.max)


def _padded(g: Rewriter, x: str, zero: int, attrs: ConvAttrs) -> str:
    """The image with its zero point around it."""
    if not any(attrs.pads):
        return x
    before, after = (
        arrange(attrs.layout, const(0), const(0), [const(p) for p in side])
        for side in (attrs.before, attrs.after)
    )
    return g.add("pad", x, attrs=PadAttrs(before, after, value=zero))
