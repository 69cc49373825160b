"""Tile statements → loops, except those whose instruction the target has.

    tile mma C[0 : 8, 0 : 12] <- A[0 : 8, 0 : 4], B[0 : 4, 0 : 12]

becomes three loops around `C[m, n] += A[m, k] * B[k, n]`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from tilewright.ir.loop.nodes import Func, Stmt, Tile
from tilewright.ir.loop.tiles import expand_tile
from tilewright.ir.loop.walk import buffers, rewrite_stmts
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.target.cpu import Target


def expand_tiles(func: Func, target: Target) -> Func:
    """`func` with every tile expanded that `target` has no instruction for."""
    known = buffers(func)
    numbers = count()

    def expand(stmt: Stmt) -> Stmt | None:
        if not isinstance(stmt, Tile) or dispatched(stmt, target):
            return None
        return expand_tile(stmt, known, f"tile{next(numbers)}")

    return replace(func, body=rewrite_stmts(func.body, expand))


def dispatched(tile: Tile, target: Target) -> bool:
    """Whether a tile becomes one instruction of the target."""
    row = INTRINSICS.get(tile.intrinsic)
    return row is not None and row.available(target.architecture, target.features)
