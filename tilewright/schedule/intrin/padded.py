"""Padded copies: what a copy reads outside of a matrix is zero.

T[i, k] = A[i + 128, k] ? i + 128 < M & k < K        A: f16[M, K]

An instruction that fills with zeros what lies outside (TMA) needs no mask, if that is exactly the
bounds of the matrix. It knows those of both its last dimensions, not those of one matrix of several
that lie one behind the other: behind the rows of one there are those of the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.arith.expr import Binary, Expr, Load, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import conjuncts, rewrite
from tilewright.ir.loop.nodes import Block, Buffer
from tilewright.ir.loop.walk import map_exprs
from tilewright.ir.types import Shape


def drop_bounds(block: Block, buffers: Mapping[str, Buffer]) -> Block:
    """A block without the masks of its loads that are the bounds of what they read."""

    def load(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.mask is not None and is_bounds(e, buffers[e.buffer].shape):
            return Load(e.buffer, e.indices, e.dtype)
        return None

    return replace(block, body=map_exprs(block.body, lambda e: rewrite(e, load)))


def is_bounds(load: Load, shape: Shape) -> bool:
    """Whether the mask of a load says no more than that it is inside of a matrix."""
    columns, rows = len(shape) - 1, len(shape) - 2
    single = all(n is const(1) for n in shape[:rows])
    dims = {rows, columns} if single else {columns}
    parts = conjuncts(load.mask) if load.mask is not None else ()
    return all(any(_bounds(c, load.indices[d], shape[d]) for d in dims) for c in parts)


def _bounds(condition: Expr, index: Expr, size: Expr) -> bool:
    """Whether a condition is that an index is below a size."""
    if not isinstance(condition, Binary) or condition.op != "lt":
        return False
    return simplify((condition.a - condition.b) - (index - size)) is const(0)
