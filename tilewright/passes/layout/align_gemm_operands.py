"""Operands of products, padded with zeros to the 16 bytes that tensor cores load at a time (GPU).

    matmul(x[M, 623], y[623, N])   →   matmul(pad(x)[M, 624], pad(y)[624, N])

Rows of 16-bit elements whose length is no multiple of eight cannot be loaded as vectors. Element by
element, each k-tile waits for its loads: several times as long as two copies take.
"""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TYPICAL_SIZE
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.gpu import VECTOR_BYTES

# Products that are worth copies of both operands: rows and columns fill a tile of tensor cores, and
# K has two k-tiles.
MIN_SIDE, MIN_K = 16, 128


def align_gemm_operands(graph: Graph, context: PassContext) -> Graph:
    """Pad K of products of 16-bit operands to whole vectors."""
    return rewrite_graph(graph, _rule, of=("matmul",))


def _rule(g: Rewriter, n: Node) -> str | None:
    if n.op != "matmul":
        return None
    x, y = (g.type(i) for i in n.inputs)
    k = as_int(x.shape[-1])
    if x.dtype.bits != 16 or k is None or k < MIN_K or min(x.rank, y.rank) < 2:
        return None
    missing = -k % (VECTOR_BYTES // x.dtype.bytes)
    sides = (as_int(size) or TYPICAL_SIZE for size in (x.shape[-2], y.shape[-1]))
    if not missing or min(sides) < MIN_SIDE:
        return None
    left = _with_zeros(g, n.inputs[0], x.rank - 1, missing)
    right = _with_zeros(g, n.inputs[1], y.rank - 2, missing)
    return g.add("matmul", left, right, attrs=n.attrs)


def _with_zeros(g: Rewriter, value: str, axis: int, missing: int) -> str:
    """A value with zeros behind an axis; what is transposed gets them before, where it lies."""
    data, made, rank = g.constant_data(value), g.producer(value), g.type(value).rank
    if data is not None:
        return g.constant(np.pad(data, [(0, missing * (d == axis)) for d in range(rank)]))
    if made is not None and isinstance(made.attrs, TransposeAttrs):
        source = _with_zeros(g, made.inputs[0], made.attrs.perm[axis], missing)
        return g.add("transpose", source, attrs=made.attrs)
    after = tuple(const(missing if d == axis else 0) for d in range(rank))
    return g.add("pad", value, attrs=PadAttrs((const(0),) * rank, after))
