"""Padded copies: what a copy reads outside of a matrix is zero.

T[i, k] = A[i + 128, k] ? i + 128 < M & k < K        A: f16[M, K]

An instruction that fills with zeros what lies outside (TMA) needs no mask, if that is exactly the
bounds of the matrix. In two dimensions it knows those of both its last ones, not those of one
matrix of several that lie one behind the other: behind the rows of one there are those of the next.
Where matrices are further dimensions it knows those of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.arith.expr import Binary, Expr, Load, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import conjuncts, free_vars, rewrite
from tilewright.ir.loop.nodes import Block, Buffer
from tilewright.ir.loop.walk import blocks, loops, map_exprs
from tilewright.ir.types import Shape


def drop_bounds(block: Block, buffers: Mapping[str, Buffer], of_several: bool = False) -> Block:
    """A block without the masks of its loads that are the bounds of what they read."""
    inside = {f.name for f in loops(block.body)}
    iters = (it for b in blocks(block.body) for it in b.iters if free_vars(it.binding) & inside)
    tile = inside.union(it.name for it in iters) if of_several else None

    def load(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.mask is not None and _is_bounds(e, buffers, tile):
            return Load(e.buffer, e.indices, e.dtype)
        return None

    return replace(block, body=map_exprs(block.body, lambda e: rewrite(e, load)))


def _is_bounds(load: Load, buffers: Mapping[str, Buffer], tile: set[str] | None) -> bool:
    return is_bounds(load, buffers[load.buffer].shape, tile)


def is_bounds(load: Load, shape: Shape, tile: set[str] | None = None) -> bool:
    """Whether the mask of a load says no more than that it is inside of a matrix.

    That may be one of several, where `tile` are the variables of its rows and columns.
    """
    columns, rows = len(shape) - 1, len(shape) - 2
    single = all(n is const(1) for n in shape[:rows])
    dims = {rows, columns} if single else {columns}
    if tile is not None:
        dims = {d for d, index in enumerate(load.indices) if free_vars(index) & tile}
    parts = conjuncts(load.mask) if load.mask is not None else ()
    return all(any(_bounds(c, load.indices[d], shape[d]) for d in dims) for c in parts)


def _bounds(condition: Expr, index: Expr, size: Expr) -> bool:
    """Whether a condition is that an index is below a size."""
    if not isinstance(condition, Binary) or condition.op != "lt":
        return False
    return simplify((condition.a - condition.b) - (index - size)) is const(0)
