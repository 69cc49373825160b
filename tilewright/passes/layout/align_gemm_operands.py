"""Operands of products, padded with zeros to the 16 bytes that tensor cores load at a time (GPU).

    matmul(x[M, 623], y[623, N])   →   matmul(pad(x)[M, 624], pad(y)[624, N])
    matmul(x[M, K], y[K, 310])     →   slice(matmul(x, pad(y)[K, 312]))[M, 310]

Rows of 16-bit elements whose length is no multiple of eight cannot be loaded as vectors. Element by
element, each k-tile waits for its loads: several times as long as the copies take.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TYPICAL_SIZE, Shape
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.slicing import SliceAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.gpu import VECTOR_BYTES

# Products that are worth copies of both operands: those that tensor cores compute, with the columns
# of a tile and a K of two. At most `MAX_THIN` rows times one matrix are one pass over it, as a copy
# of it is; that of a constant is made beforehand.
MIN_ROWS, MIN_COLUMNS, MIN_K, MAX_THIN = 4, 16, 128, 8


def align_gemm_operands(graph: Graph, context: PassContext) -> Graph:
    """Pad products of 16-bit operands to whole vectors along K, and along N where rows lie so."""
    return rewrite_graph(graph, _rule, of=("matmul",))


def _rule(g: Rewriter, n: Node) -> str | None:
    if n.op != "matmul":
        return None
    x, y = (g.type(i) for i in n.inputs)
    k = as_int(x.shape[-1])
    if x.dtype.bits != 16 or k is None or k < MIN_K or min(x.rank, y.rank) < 2:
        return None
    columns = as_int(y.shape[-1])
    rows = as_int(x.shape[-2]) or TYPICAL_SIZE
    every = prod(as_int(size) or TYPICAL_SIZE for size in x.shape[:-1])
    thin = y.rank == 2 and every <= MAX_THIN and g.constant_data(n.inputs[1]) is None
    few = rows < MIN_ROWS or thin
    few = few or (columns or TYPICAL_SIZE) < MIN_COLUMNS
    vector = VECTOR_BYTES // x.dtype.bytes
    more_k, more_n = -k % vector, -columns % vector if columns and _is_n_major(g, n) else 0
    if few or not (more_k or more_n):
        return None
    left = _with_zeros(g, n.inputs[0], {x.rank - 1: more_k})
    right = _with_zeros(g, n.inputs[1], {y.rank - 2: more_k, y.rank - 1: more_n})
    product = g.add("matmul", left, right, attrs=n.attrs)
    return product if not more_n else _first(g, product, n.type.shape)


def _is_n_major(g: Rewriter, n: Node) -> bool:
    """Whether rows of the second operand lie along N; a kernel chooses the layout of constants."""
    made = g.producer(n.inputs[1])
    transposed = made is not None and isinstance(made.attrs, TransposeAttrs)
    return not transposed and g.constant_data(n.inputs[1]) is None


def _first(g: Rewriter, value: str, shape: Shape) -> str:
    """The first elements along the last axis, as many as a shape has."""
    rank = len(shape)
    attrs = SliceAttrs((const(0),) * rank, shape, (1,) * rank, inside=True)
    return g.add("slice", value, attrs=attrs)


def _with_zeros(g: Rewriter, value: str, more: Mapping[int, int]) -> str:
    """A value with zeros behind axes; what is transposed gets them before, where it lies."""
    data, made, rank = g.constant_data(value), g.producer(value), g.type(value).rank
    if not any(more.values()):
        return value
    if data is not None:
        return g.constant(np.pad(data, [(0, more.get(d, 0)) for d in range(rank)]))
    if made is not None and isinstance(made.attrs, TransposeAttrs):
        perm = made.attrs.perm
        source = _with_zeros(g, made.inputs[0], {perm[d]: count for d, count in more.items()})
        return g.add("transpose", source, attrs=made.attrs)
    after = tuple(const(more.get(d, 0)) for d in range(rank))
    return g.add("pad", value, attrs=PadAttrs((const(0),) * rank, after))
