"""Trim the taps of a convolution that only meet padding.

    conv(x[N, C, 1], w[O, C, 3]) {pads=[1, 1]}   →   conv(x, w[:, :, 1:2]) {pads=[0, 0]}

Where an image is as small as the window, most taps read padding.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.arith.expr import as_int
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.sliding_window import spatial
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph


def trim_padding_taps(graph: Graph, context: PassContext) -> Graph:
    """Leave out weights at the edges of windows that no window has inside of the image."""
    return rewrite_graph(graph, _rule, of=("conv",))


def _rule(g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    if n.op != "conv" or not isinstance(attrs, ConvAttrs):
        return None
    weights = g.constant_data(n.inputs[1])
    # what is not finite makes NaN of a zero
    if weights is None or not any(attrs.pads) or not np.isfinite(weights).all():
        return None
    cut = [slice(None)] * weights.ndim
    pads = list(attrs.pads)
    sizes = spatial(attrs.layout, g.type(n.inputs[0]).shape)
    counts = spatial(attrs.layout, n.type.shape)
    for axis, (size, count) in enumerate(zip(map(as_int, sizes), map(as_int, counts), strict=True)):
        if size and count:
            first, last = _used(attrs, axis, size, count, weights.shape[2 + axis])
            before = pads[axis] - first * attrs.dilations[axis]
            lost = weights.shape[2 + axis] - 1 - last
            after = pads[attrs.rank + axis] - lost * attrs.dilations[axis]
            if min(before, after) >= 0 and first <= last:
                pads[axis], pads[attrs.rank + axis] = before, after
                cut[2 + axis] = slice(first, last + 1)
    kept = weights[tuple(cut)]
    if kept.shape == weights.shape:
        return None
    return g.add(
        n.op, n.inputs[0], g.constant(kept), *n.inputs[2:], attrs=replace(attrs, pads=tuple(pads))
    )


def _used(attrs: ConvAttrs, axis: int, size: int, count: int, taps: int) -> tuple[int, int]:
    """The first and the last place of a window that one of them has inside of the image."""
    places = np.arange(taps) * attrs.dilations[axis] - attrs.before[axis]
    starts = np.arange(count) * attrs.strides[axis]
    at = places[:, None] + starts
    inside = np.flatnonzero(((at >= 0) & (at < size)).any(axis=1))
    return (int(inside[0]), int(inside[-1])) if len(inside) else (0, -1)
