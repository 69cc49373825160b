"""Tile statements → loops, except those whose instruction the target has.

    tile mma C[0 : 8, 0 : 12] <- A[0 : 8, 0 : 4], B[0 : 4, 0 : 12]

becomes three loops around `C[m, n] += A[m, k] * B[k, n]`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count, groupby

from tilewright.ir.loop.nodes import Block, Func, Stmt, Store, Tile
from tilewright.ir.loop.tiles import expand_tile
from tilewright.ir.loop.walk import (
    buffers,
    child_stmts,
    rewrite_stmts,
    statements_in,
    touched_buffers,
)
from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.target.target import Target


def expand_tiles(func: Func, target: Target) -> Func:
    """`func` with every tile expanded that `target` has no instruction for."""
    known = buffers(func)
    numbers = count()
    holding = _can_hold(func, target)

    def expand(stmt: Stmt) -> Stmt | None:
        if not isinstance(stmt, Tile) or (
            dispatched(stmt, target)
            and (holding or not INTRINSICS[stmt.intrinsic].register_operand)
        ):
            return None
        return expand_tile(stmt, known, f"tile{next(numbers)}")

    return replace(func, body=rewrite_stmts(func.body, expand))


def dispatched(tile: Tile, target: Target) -> bool:
    """Whether a tile becomes one instruction of the target."""
    row = INTRINSICS.get(tile.intrinsic)
    return row is not None and row.available(target.architecture, target.features)


def _can_hold(func: Func, target: Target) -> bool:
    """Whether what instructions hold in registers of their own is theirs alone.

    The registers have fixed numbers: they can be one buffer at a time, which nothing else may
    touch.
    """
    tiles = [s for s in statements_in(func.body) if isinstance(s, Tile) and dispatched(s, target)]
    held = {_held_operand(t) for t in tiles} - {""}
    if len(held) > 1 and not _take_turns(func.body, held):
        return False
    for stmt in statements_in(func.body):
        if isinstance(stmt, Block):
            continue
        reads, writes = touched_buffers(stmt) if _is_leaf(stmt) else (set(), set())
        mine = isinstance(stmt, Tile) and dispatched(stmt, target) and _held_operand(stmt) in held
        if not mine and (reads | writes) & held:
            return False
    return True


def _take_turns(stmt: Stmt, held: set[str]) -> bool:
    """Whether the statements of each buffer come one after another, with none of others between.

    That is so if the parts of a sequence, whatever loops are around it, each have statements of one
    buffer only, and those of the same buffer are neighbours.
    """
    parts = [(s, _tiles_of(s, held)) for s in child_stmts(stmt)]
    using = [(s, found) for s, found in parts if found]
    if len(using) == 1:
        return _take_turns(using[0][0], held)
    if any(len(found) > 1 for _, found in using):
        return False
    turns = [name for name, _ in groupby(min(found) for _, found in using)]
    return len(turns) == len({*turns})


def _tiles_of(stmt: Stmt, held: set[str]) -> set[str]:
    """Which of the buffers the tiles in a statement hold."""
    return {_held_operand(s) for s in statements_in(stmt) if isinstance(s, Tile)} & held


def _held_operand(tile: Tile) -> str:
    """The buffer that a tile's instruction holds in registers; empty if it holds none."""
    row = INTRINSICS.get(tile.intrinsic)
    if row is None or not row.register_operand:
        return ""
    names = [p.name for p in pattern_of(tile.intrinsic).params]
    return (*tile.srcs, tile.dst)[names.index(row.register_operand)].buffer


def _is_leaf(stmt: Stmt) -> bool:
    return isinstance(stmt, Store | Tile)
