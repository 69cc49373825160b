"""Operands of products, padded with zeros to the 16 bytes that tensor cores load at a time (GPU).

    matmul(x[M, 623], y[623, N])   →   matmul(pad(x)[M, 624], pad(y)[624, N])
    matmul(x[M, K], y[K, 310])     →   slice(matmul(x, pad(y)[K, 320]))[M, 310]

Rows of 16-bit elements whose length is no multiple of eight cannot be loaded as vectors. Element by
element, each k-tile waits for its loads: several times as long as the copies take. Copies have rows
of whole sectors, 16 elements, or of whole lines, 64, where these are little more: the L2 gives SMs
such rows two to three times as fast. A product of few rows takes less time than copies: where its
rows are whole words, they are loaded as they lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod

import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TYPICAL_SIZE, Shape
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.slicing import SliceAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.gpu import SECTOR_BYTES, VECTOR_BYTES, GpuTarget

# What a k-tile has of a row, and how much longer rows may become by whole ones of it.
LINE_BYTES, MOST_MORE = 128, 1 / 16
# What `cp.async` copies at least.
WORD_BYTES = 4
# Products that are worth copies of both operands: those that tensor cores compute, with the columns
# of a tile and a K of two. At most `MAX_THIN` rows times one matrix are one pass over it, as a copy
# of it is; that of a constant is made beforehand.
MIN_ROWS, MIN_COLUMNS, MIN_K, MAX_THIN = 4, 16, 128, 8


def align_gemm_operands(graph: Graph, context: PassContext) -> Graph:
    """Pad products of 16-bit operands to whole vectors along K, and along N where rows lie so."""
    target = context.target
    assert isinstance(target, GpuTarget)
    return rewrite_graph(graph, partial(_rule, target), of=("matmul",))


def _rule(target: GpuTarget, g: Rewriter, n: Node) -> str | None:
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
    more_k = _missing(k, x.dtype.bytes)
    more_n = _missing(columns, x.dtype.bytes) if columns and _is_n_major(g, n) else 0
    if few or not (more_k or more_n) or _is_quicker_in_words(target, g, n, bool(more_k)):
        return None
    left = _with_zeros(g, n.inputs[0], {x.rank - 1: more_k})
    right = _with_zeros(g, n.inputs[1], {y.rank - 2: more_k, y.rank - 1: more_n})
    product = g.add("matmul", left, right, attrs=n.attrs)
    return product if not more_n else _first(g, product, n.type.shape)


def _missing(size: int, element: int) -> int:
    """The elements that a row of no whole vectors gets: up to a line, if few, or to a sector."""
    if size * element % VECTOR_BYTES == 0:
        return 0
    lines, sectors = (-size % (unit // element) for unit in (LINE_BYTES, SECTOR_BYTES))
    return lines if lines <= MOST_MORE * size else sectors


def _is_quicker_in_words(target: GpuTarget, g: Rewriter, n: Node, both: bool) -> bool:
    """Whether copies take longer than the product, whose rows can be loaded in words."""
    x, y = (g.type(i) for i in n.inputs)
    rows = [x.shape[-1], *([y.shape[-1]] if _is_n_major(g, n) else [])]
    if any((as_int(size) or 0) * x.dtype.bytes % WORD_BYTES for size in rows):
        return False
    if any(_is_computed(g, value) for value in n.inputs):
        return False
    first, second = (prod(as_int(size) or TYPICAL_SIZE for size in t.shape) for t in (x, y))
    products = 2 * first * (as_int(y.shape[-1]) or TYPICAL_SIZE)
    copied = (first if both else 0) + (second if g.constant_data(n.inputs[1]) is None else 0)
    return products / target.mma_rate < 2 * copied * x.dtype.bytes / target.memory_rate


def _is_computed(g: Rewriter, value: str) -> bool:
    """Whether who makes a value computes its elements one by one, and may as well write zeros."""
    made = g.producer(value)
    if made is not None and isinstance(made.attrs, TransposeAttrs):
        made = g.producer(made.inputs[0])
    return made is not None and get_op(made.op).kind == "injective"


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
