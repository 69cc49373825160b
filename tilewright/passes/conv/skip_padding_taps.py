"""Say of convolutions that taps in the padding may be left out, where much of the work is there.

    conv(x[1, 64, 16, 16], w[64, 64, 5, 5]) {dilations=[4, 4], pads=[8, 8, 8, 8]}

Zero times a weight is zero if the weight is finite: of a constant, that is known. A kernel then
tests for each tile and tap whether there is anything but padding, which pays where windows are
large beside the image.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from tilewright.arith.expr import as_int
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.sliding_window import spatial
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.cpu import CpuTarget

# The part of all products in padding from which it is worth to test for it.
MIN_SHARE = 0.1


def skip_padding_taps(graph: Graph, context: PassContext) -> Graph:
    """Let convolutions whose windows are often outside of the image test for it."""
    if not isinstance(context.target, CpuTarget):
        return graph
    return rewrite_graph(graph, _rule, of=("conv",))


def _rule(g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    # Groups of one channel have a way of their own, `finalize/cpu/padding_last.py`.
    if type(attrs) is not ConvAttrs or attrs.groups > 1 or attrs.skips_padding:
        return None
    if padding_share(g, n, attrs) < MIN_SHARE:
        return None
    weights = g.constant_data(n.inputs[1])
    if weights is None or not np.isfinite(weights).all():
        return None
    return g.add(n.op, *n.inputs, attrs=replace(attrs, skips_padding=True))


def padding_share(g: Rewriter, n: Node, attrs: ConvAttrs) -> float:
    """The part of a convolution's products that are of padding; 0 where sizes are not known."""
    sizes = [as_int(d) for d in spatial(attrs.layout, g.type(n.inputs[0]).shape)]
    counts = [as_int(d) for d in spatial(attrs.layout, n.type.shape)]
    taps = [as_int(d) for d in g.type(n.inputs[1]).shape[2:]]
    shares = []
    for axis, known in enumerate(zip(sizes, counts, taps, strict=True)):
        size, count, width = (d or 0 for d in known)
        starts = np.arange(count) * attrs.strides[axis] - attrs.before[axis]
        at = starts[:, None] + np.arange(width) * attrs.dilations[axis]
        if not at.size:
            return 0.0
        shares.append(float(((at >= 0) & (at < size)).mean()))
    return 1 - prod(shares)
