"""Sums of products that are no whole pieces of 16 bytes get zeros, up to a piece.

    conv[channels_last](x[N, H, W, 3], w)   →   conv[channels_last](pad(x)[N, H, W, 8], padded w)
    matmul(concat(x[M, 64], y[M, 351]), w)  →   matmul(concat(x, pad(y)[M, 352]), padded w)

Instructions on matrices read pieces of the sum, and a piece is one pixel then. What is multiplied
besides costs less than moving elements one by one; who makes the image, or the part of what is
joined, writes it padded.
"""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.conv import ConvAttrs, ConvTransposeAttrs
from tilewright.ops.padding import PadAttrs
from tilewright.ops.slicing import ConcatAttrs
from tilewright.ops.table import op_row
from tilewright.passes.rewriter import Rewriter, rewrite_graph

PIECE_BYTES = 16
# Terms of a sum that are worth an instruction on matrices.
LEAST_TERMS = 32


def pad_channels(graph: Graph) -> Graph:
    """Give the first convolution of an image, in 16 bits, as many channels as a piece has.

    And a product of what is joined as many columns as are whole pieces.
    """
    return rewrite_graph(graph, _rule, of=("conv", "matmul"))


def _rule(g: Rewriter, n: Node) -> str | None:
    return _joined(g, n) if n.op == "matmul" else _image(g, n)


def _joined(g: Rewriter, n: Node) -> str | None:
    """A product with a constant of what is joined of parts, one of which can be written padded."""
    join, weights = g.producer(n.inputs[0]), g.constant_data(n.inputs[1])
    if join is None or not isinstance(join.attrs, ConcatAttrs) or weights is None:
        return None
    last = g.type(n.inputs[0]).rank - 1
    if join.attrs.axis not in (-1, last) or weights.ndim != 2 or g.use_count(n.inputs[0]) != 1:
        return None
    missing = -len(weights) % (PIECE_BYTES // g.type(n.inputs[0]).dtype.bytes)
    found = next((i for i, x in enumerate(join.inputs) if _writes_anywhere(g, x)), None)
    sizes = [as_int(g.type(x).shape[-1]) for x in join.inputs]
    if not missing or found is None or len(weights) < LEAST_TERMS:
        return None
    before = [size for size in sizes[: found + 1] if size is not None]
    if len(before) <= found:
        return None
    none = (const(0),) * last
    attrs = PadAttrs((*none, const(0)), (*none, const(missing)))
    parts = list(join.inputs)
    parts[found] = g.add("pad", parts[found], attrs=attrs)
    zeros = np.zeros((missing, weights.shape[1]), weights.dtype)
    padded = np.insert(weights, sum(before), zeros, axis=0)
    joined = g.add("concat", *parts, attrs=join.attrs)
    return g.add("matmul", joined, g.constant(padded), attrs=n.attrs)


def _writes_anywhere(g: Rewriter, value: str) -> bool:
    """Whether who makes a value computes its elements one by one, and for no one else."""
    made = g.producer(value)
    return made is not None and op_row(made.op).kind == "injective" and g.use_count(value) == 1


def _image(g: Rewriter, n: Node) -> str | None:
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
