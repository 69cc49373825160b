"""Grouped convolutions get the groups as an axis of their own.

    conv[groups](x, w)   →   reshape(group_conv(reshape(x), reshape(w)))

A formula over all channels would compute a channel's group by division, and no operand could be
reused between the columns of a tile. Depthwise convolutions, one channel a group, are not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tilewright.arith.expr import as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Shape
from tilewright.ops.conv.conv import ConvAttrs, ConvTransposeAttrs
from tilewright.ops.conv.sliding_window import LAYOUTS, WindowAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs, static_sizes
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.gpu import GpuTarget


def split_conv_groups(graph: Graph, context: PassContext) -> Graph:
    """Make the groups of convolutions an axis; on a GPU of channels-last ones, for tensor cores."""
    layouts = ("channels_last",) if isinstance(context.target, GpuTarget) else LAYOUTS
    return rewrite_graph(graph, partial(_rule, layouts), of=("conv",))


def _rule(layouts: Sequence[str], g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    if not isinstance(attrs, ConvAttrs) or isinstance(attrs, ConvTransposeAttrs):
        return None
    if attrs.groups == 1 or attrs.layout not in layouts:
        return None
    x, w = (g.type(i) for i in n.inputs)
    inside, filters = as_int(w.shape[1]), as_int(w.shape[0])
    if inside is None or inside == 1 or filters is None:
        return None
    groups = const(attrs.groups)
    weights = _reshaped(g, n.inputs[1], (groups, const(filters // attrs.groups), *w.shape[1:]))
    if attrs.layout == "channels_first":
        window = WindowAttrs(attrs.strides, attrs.pads, attrs.dilations, attrs.layout)
        result = g.add("group_conv", n.inputs[0], weights, attrs=window)
    else:
        data = ReshapeAttrs((*x.shape[:-1], groups, w.shape[1]))
        x_in_groups = g.add("reshape", n.inputs[0], attrs=data)
        result = g.add("group_conv", x_in_groups, weights, attrs=_window(attrs))
    return g.add("reshape", result, attrs=ReshapeAttrs(n.type.shape))


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
