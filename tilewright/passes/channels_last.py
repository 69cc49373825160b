"""Convolutions and pooling in channels-last form.

    y = conv(x, w)   →   y = transpose(conv[channels_last](transpose(x), w))

With the channels innermost, a convolution is a matrix product over contiguous channels, and what
follows it vectorises along them. The transposes meet and cancel in `sink_transposes`.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.layout import TransposeAttrs
from tilewright.ops.window import WindowAttrs
from tilewright.passes.rewriter import Rewriter, rewrite_graph


def channels_last(graph: Graph) -> Graph:
    """Give every convolution and pooling the channels-last layout."""
    return rewrite_graph(graph, _rule)


def _rule(g: Rewriter, n: Node) -> tuple[str, ...] | None:
    attrs = n.attrs
    if not isinstance(attrs, WindowAttrs) or attrs.layout != "channels_first":
        return None
    rank = attrs.rank + 2
    to_last = (0, *range(2, rank), 1)
    to_first = (0, rank - 1, *range(1, rank - 1))
    data = g.add("transpose", n.inputs[0], attrs=TransposeAttrs(to_last))
    outputs = g.add_many(n.op, data, *n.inputs[1:], attrs=replace(attrs, layout="channels_last"))
    return tuple(g.add("transpose", o, attrs=TransposeAttrs(to_first)) for o in outputs)
