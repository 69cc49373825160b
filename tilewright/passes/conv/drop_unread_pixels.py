"""Drop the pixels between the taps that no window of a convolution reads.

    conv(x, w) {strides=[4], dilations=[2]}   →   conv(x[::2], w) {strides=[2], dilations=[1]}

All that is read lies multiples of the greatest common divisor of stride and dilation apart. It is
copied once; a window without holes then reads it from fewer cache lines, perhaps by a faster
kernel. On a GPU tiles gather their pixels anyway, and a copy would only cost time.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from tilewright.arith.expr import const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.tensor.manipulation import static_sizes
from tilewright.ops.tensor.slicing import SliceAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.cpu import CpuTarget


def drop_unread_pixels(graph: Graph, context: PassContext) -> Graph:
    """Let dilated convolutions that step read a copy of the pixels that they need."""
    if not isinstance(context.target, CpuTarget):
        return graph
    return rewrite_graph(graph, _rule, of=("conv",))


def _rule(g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    if type(attrs) is not ConvAttrs or attrs.layout != "channels_first":
        return None
    shape = g.type(n.inputs[0]).shape
    sizes = static_sizes(shape[2:])
    taps = static_sizes(g.type(n.inputs[1]).shape[2:])
    counts = static_sizes(n.type.shape[2:])
    if sizes is None or taps is None or counts is None:
        return None
    axes = [
        _Axis(size, count, windows, *window)
        for size, count, windows, *window in zip(
            sizes, taps, counts, attrs.strides, attrs.dilations, attrs.before, strict=True
        )
    ]
    if all(axis.step == 1 for axis in axes) or any(axis.kept < 1 for axis in axes):
        return None
    starts = (const(0), const(0), *(const(axis.first) for axis in axes))
    steps = (1, 1, *(axis.step for axis in axes))
    kept = g.add("slice", n.inputs[0], attrs=SliceAttrs(starts, shape, steps))
    closer = replace(
        attrs,
        strides=tuple(axis.stride // axis.step for axis in axes),
        dilations=tuple(axis.closer for axis in axes),
        pads=tuple(pad for side in zip(*(axis.pads for axis in axes), strict=True) for pad in side),
    )
    return g.add(n.op, kept, *n.inputs[1:], attrs=closer)


class _Axis:
    """One axis of the windows: every `step`-th pixel from the `first` on is read."""

    def __init__(
        self, size: int, taps: int, windows: int, stride: int, dilation: int, before: int
    ) -> None:
        self.stride = stride
        self.step = gcd(stride, dilation) if taps > 1 else 1
        self.first = -before % self.step
        self.kept = -(-(size - self.first) // self.step)
        self.closer = dilation // self.step
        last = (windows - 1) * stride + (taps - 1) * dilation - before
        beyond = (last - self.first) // self.step - (self.kept - 1)
        self.pads = (before + self.first) // self.step, max(0, beyond)
