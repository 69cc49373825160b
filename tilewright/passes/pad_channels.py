"""Convolutions of fewer channels than a piece of 16 bytes get zero ones, up to a piece.

    conv[channels_last](x[N, H, W, 3], w)   →   conv[channels_last](pad(x)[N, H, W, 8], padded w)

Instructions on matrices read pieces of the sum, and a piece is one pixel then. What is multiplied
besides costs less than moving elements one by one; who makes the image writes it padded.
"""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.conv import ConvAttrs, ConvTransposeAttrs
from tilewright.ops.padding import PadAttrs
from tilewright.passes.rewriter import Rewriter, rewrite_graph

PIECE_BYTES = 16
# Terms of a sum that are worth an instruction on matrices.
LEAST_TERMS = 32


def pad_channels(graph: Graph) -> Graph:
    """Give the first convolution of an image, in 16 bits, as many channels as a piece has."""
    return rewrite_graph(graph, _rule, of=("conv",))


def _rule(g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    if not isinstance(attrs, ConvAttrs) or isinstance(attrs, ConvTransposeAttrs):
        return None
    x, weights = g.type(n.inputs[0]), g.constant_data(n.inputs[1])
    if attrs.groups != 1 or attrs.layout != "channels_last" or weights is None:
        return None
    channels = as_int(x.shape[-1])
    missing = PIECE_BYTES // x.dtype.bytes - (channels or 0)
    if x.dtype.bits != 16 or not channels or missing <= 0 or weights[0].size < LEAST_TERMS:
        return None
    none, more = (const(0),) * (x.rank - 1), const(missing)
    image = g.add("pad", n.inputs[0], attrs=PadAttrs((*none, const(0)), (*none, more)))
    width = [(0, missing if axis == 1 else 0) for axis in range(weights.ndim)]
    return g.add("conv", image, g.constant(np.pad(weights, width)), attrs=attrs)
