"""Grouped convolutions get the groups as an axis of their own.

    conv[groups](x, w)   →   reshape(group_conv(reshape(x), reshape(w)))

A formula over all channels would compute a channel's group by division, and no operand could be
reused between the columns of a tile. Depthwise convolutions, one channel a group, are not changed;
on a GPU, neither are groups of few filters that come first.
"""

from __future__ import annotations

from functools import partial
from math import prod

from tilewright.arith.expr import Expr, as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Shape
from tilewright.ops.conv.conv import ConvAttrs, ConvTransposeAttrs
from tilewright.ops.conv.sliding_window import LAYOUTS, WindowAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs, static_sizes
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.cpu import CpuTarget
from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target

# Vectors of a line of which most are copied whole: the first and the last contain padding.
MIN_VECTORS = 3
# The filters of a group that fill a tile of a GEMM on a GPU, where channels come first; the terms
# of a sum from which a tile that is not full pays, too, and its fewest filters.
FULL_TILE, MIN_TERMS, MIN_FILTERS = 16, 64, 4


def split_conv_groups(graph: Graph, context: PassContext) -> Graph:
    """Make the groups of convolutions an axis: the batch of a GEMM."""
    return rewrite_graph(graph, partial(_rule, context.target), of=("conv",))


def _rule(target: Target, g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    if not isinstance(attrs, ConvAttrs) or isinstance(attrs, ConvTransposeAttrs):
        return None
    if attrs.groups == 1 or attrs.layout not in LAYOUTS:
        return None
    w = g.type(n.inputs[1])
    inside, filters = as_int(w.shape[1]), as_int(w.shape[0])
    if inside is None or inside == 1 or filters is None:
        return None
    first = attrs.layout == "channels_first"
    if first and isinstance(target, GpuTarget) and not _fills_tiles(w.shape, attrs.groups):
        return None
    groups = const(attrs.groups)
    weights = _reshaped(g, n.inputs[1], (groups, const(filters // attrs.groups), *w.shape[1:]))
    if attrs.layout == "channels_first":
        window = WindowAttrs(attrs.strides, attrs.pads, attrs.dilations, attrs.layout)
        result = g.add("group_conv", n.inputs[0], weights, attrs=window)
    else:
        cpu = target if any(attrs.pads) and isinstance(target, CpuTarget) else None
        data = _in_groups(g, n.inputs[0], groups, w.shape[1], cpu)
        result = g.add("group_conv", data, weights, attrs=_window(attrs))
    return g.add("reshape", result, attrs=ReshapeAttrs(n.type.shape))


def _fills_tiles(weights: Shape, groups: int) -> bool:
    """Whether the products of each group are worth tiles of a GEMM."""
    each = (as_int(weights[0]) or 0) // groups
    terms = prod(as_int(n) or 1 for n in weights[1:])
    return each >= FULL_TILE or (each >= MIN_FILTERS and terms >= MIN_TERMS)


def _in_groups(g: Rewriter, x: str, groups: Expr, each: Expr, cpu: CpuTarget | None) -> str:
    """Data `[batch, space..., channels]` with the channels in groups.

    What a transpose put last is split before it where a `cpu` copies it to pad it: the copy then
    reads through the transpose.
    """
    t, before = g.type(x), g.producer(x)
    last = TransposeAttrs((0, *range(2, t.rank), 1))
    line = as_int(t.shape[-2]) or 0
    long = cpu is not None and line >= MIN_VECTORS * cpu.lanes(t.dtype.bits)
    if not long or before is None or before.attrs != last:
        return g.add("reshape", x, attrs=ReshapeAttrs((*t.shape[:-1], groups, each)))
    split = ReshapeAttrs((t.shape[0], groups, each, *t.shape[1:-1]))
    source = g.add("reshape", before.inputs[0], attrs=split)
    return g.add("transpose", source, attrs=TransposeAttrs((0, *range(3, t.rank + 1), 1, 2)))


def _reshaped(g: Rewriter, value: str, shape: Shape) -> str:
    """A value under another shape; a constant stays one, whose layout a kernel may choose."""
    data = g.constant_data(value)
    if data is not None:
        sizes = static_sizes(shape)
        assert sizes is not None, "a constant's size is known"
        return g.constant(data.reshape(sizes))
    return g.add("reshape", value, attrs=ReshapeAttrs(shape))


def _window(attrs: ConvAttrs) -> WindowAttrs:
    """The windows, with the groups as one more axis."""
    return WindowAttrs(
        (*attrs.strides, 1),
        (*attrs.before, 0, *attrs.after, 0),
        (*attrs.dilations, 1),
        attrs.layout,
    )
