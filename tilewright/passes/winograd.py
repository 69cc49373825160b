"""3 by 3 convolutions with many channels by Winograd's method.

    conv(x, w)   →   reshape(winograd_output(matmul(winograd_input(x), w')))

It computes 2.25 times fewer products but moves the image through two transforms, so it pays where a
pixel meets many filters. The sums are reassociated: results differ in the last bits.
"""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.conv import ConvAttrs
from tilewright.ops.layout import ReshapeAttrs
from tilewright.ops.slicing import SliceAttrs
from tilewright.ops.winograd import TILE, WINDOW, WinogradAttrs, transform_filter
from tilewright.passes.rewriter import Rewriter, rewrite_graph

# Channels on either side below which the transforms cost more than the products they save.
LEAST_CHANNELS = 32


def winograd(graph: Graph) -> Graph:
    """Compute wide 3 by 3 convolutions with fewer multiplications."""
    return rewrite_graph(graph, _rule)


def _rule(g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    if n.op != "conv" or not isinstance(attrs, ConvAttrs):
        return None
    weights = g.constant_data(n.inputs[1])
    tiles = _tiles(n)
    if weights is None or tiles is None or not _pays(attrs, weights):
        return None
    batch, height, width, filters = n.type.shape
    settings = WinogradAttrs(tiles, (attrs.before[0], attrs.before[1]))
    windows = g.add("winograd_input", n.inputs[0], attrs=settings)
    count = batch * const(tiles[0] * tiles[1])
    rows = (const(WINDOW * WINDOW), count, const(weights.shape[1]))
    left = g.add("reshape", windows, attrs=ReshapeAttrs(rows))
    products = g.add("matmul", left, g.constant(transform_filter(weights)))
    grid = (*g.type(windows).shape[:-1], filters)
    tiled = g.add("reshape", products, attrs=ReshapeAttrs(grid))
    result = g.add("winograd_output", tiled, attrs=settings)
    whole = (batch, const(tiles[0] * TILE), const(tiles[1] * TILE), filters)
    image = g.add("reshape", result, attrs=ReshapeAttrs(whole))
    if whole == n.type.shape:
        return image
    cut = SliceAttrs((const(0),) * 4, (batch, height, width, filters), (1,) * 4)
    return g.add("slice", image, attrs=cut)


def _tiles(n: Node) -> tuple[int, int] | None:
    """The number of tiles that cover the output in each direction, if its size is known."""
    sizes = [as_int(d) or 0 for d in n.type.shape[1:3]]
    if n.type.rank != 4 or 0 in sizes:
        return None
    return -(-sizes[0] // TILE), -(-sizes[1] // TILE)


def _pays(attrs: ConvAttrs, weights: np.ndarray) -> bool:
    plain = (
        attrs.layout == "channels_last"
        and attrs.groups == 1
        and attrs.strides == (1, 1)
        and attrs.dilations == (1, 1)
        and weights.shape[2:] == (3, 3)
    )
    return plain and weights.dtype == np.float32 and min(weights.shape[:2]) >= LEAST_CHANNELS
