"""Products of matrices, convolutions among them: tiles in shared memory, smaller ones in registers.

    grid: (batch, row tile, column tile)
      thread (y, x): C = 0                               registers
      for k in steps of the tile's depth, copies some steps ahead
        threads: left, right = tiles of the operands     shared
        thread (y, x): C[8, 8] += left[8] * right[8]
      thread (y, x): result = formulas(C)

A thread has pieces of four rows and columns, neighbouring threads neighbouring ones: they read
neighbouring words of shared memory. A left operand that lies along the depth stays so; then threads
have single rows, and read pieces of those. See `transpose_operands.py` for what is turned before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from tilewright.arith.expr import Expr, Load, Var, ceildiv
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.annotations import MIN_BLOCKS_PER_SM, PIPELINE_STAGES
from tilewright.ir.loop.nodes import Block, Buffer, Iter, Store
from tilewright.schedule.analysis.blocks import (
    facts_of,
    flat_index,
    flat_stride,
    in_groups,
    loop_of,
    reductions,
    typical_extent,
)
from tilewright.schedule.analysis.gemm import operand_load, product_roles
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import PIECE, Tile, longest_axis
from tilewright.schedule.builtin.gpu.thread_per_element import schedule_sum
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# As many columns as are worth a way through shared memory, where their rows begin anywhere: 50257
# gain 8 %; 197, with a mask and a depth of 64, take 1.8 times as long (vit_b16, batch 32).
LEAST_ROW = 1024
# The words along the depth, and across it, that threads of a warp turn on their way: those along it
# lie side by side in memory, those across it in banks of their own.
TURNED = (4, 8)
# How far copies run ahead, this step's among them.
STAGES = 4


def schedule_in_parts(
    sch: Schedule,
    name: str,
    parts: int,
    tiles: Callable[[str, str], None],
    target: GpuTarget,
) -> None:
    """Let `tiles` schedule a product and its reader; of several parts, each, and then their sum."""
    if parts == 1:
        tiles(name, facts_of(sch.func).blocks[-1].name)
        return
    block = facts_of(sch.func).block(name)
    number, _ = sch.split(loop_of(longest_axis(tuple(reductions(block)))), [parts, None])
    part = sch.rfactor(name, number)
    tiles(part, sch.cache_write(part, "global"))
    schedule_sum(sch, name, target, parts=True)


def schedule_product(sch: Schedule, name: str, tile: Tile, target: GpuTarget) -> None:
    """Schedule a sum of products and the one block behind it."""
    schedule_in_parts(sch, name, tile.parts, partial(_schedule_tiles, sch, tile), target)


def _schedule_tiles(sch: Schedule, tile: Tile, name: str, reader: str) -> None:
    """Schedule a sum of products, and the block that reads it, tile by tile."""
    facts = facts_of(sch.func)
    left, right = (
        _copied(facts.block(name), facts.buffers, side, tile) for side in ("left", "right")
    )
    sch.to_product(name, *tile.sides, left.order, right.order)
    rows, columns = tile.row_parts(PIECE if left.order == "km" else 1), tile.column_parts()
    m0, m1, y0, y1, m2 = sch.split(f"{name}.m", [None, *rows])
    n0, n1, x0, x1, n2 = sch.split(f"{name}.n", [None, *columns])
    k0, k1 = sch.split(f"{name}.k", [None, tile.depth])
    sch.reorder(f"{name}.b", m0, n0, k0, y0, x0, y1, x1, k1, m1, m2, n1, n2)
    for loop in (y0, x0, y1, x1):
        sch.bind(loop, "thread")
    for loop in (k1, m1, m2, n1):
        sch.unroll(loop)
    sch.vectorize(n2)
    grid = sch.fuse(f"{name}.b", m0, n0)
    sch.bind(grid, "grid")
    lean = left.order == "km" and left.pieces and right.pieces
    # Words that move one by one, and rows along the depth, take more registers.
    sch.annotate(grid, MIN_BLOCKS_PER_SM.key, tile.resident if lean else max(1, tile.resident - 1))
    _copy_tile(sch, f"{name}.left", k0, left, tile)
    _copy_tile(sch, f"{name}.right", k0, right, tile)
    sch.decompose_reduction(name, k0)
    sch.set_scope(facts_of(sch.func).block(name).writes[0].buffer, "register")
    write = _write_rows if _writes_rows(sch, reader) else _write_tile
    write(sch, reader, grid, rows, columns)
    sch.annotate(k0, PIPELINE_STAGES.key, STAGES)


def reads_along_depth(block: Block, buffers: dict[str, Buffer], side: str) -> bool:
    """Whether neighbouring elements of an operand are neighbours in the sum."""
    roles = product_roles(block, vectors=True)
    assert roles is not None
    load = operand_load(getattr(roles, side))
    return flat_stride(load, buffers[load.buffer], roles.depth[-1].name) == 1


@dataclass(frozen=True)
class _Copy:
    """How a tile of an operand is copied: in which order its dimensions lie in shared memory.

    Neighbours in memory are neighbours of the depth, or not; they move in pieces or one by one.
    """

    order: str
    deep: bool
    pieces: bool


def _copied(block: Block, buffers: dict[str, Buffer], side: str, tile: Tile) -> _Copy:
    """How an operand is copied.

    Rows that lie along the depth stay so: threads read pieces of them as they read columns.
    """
    roles = product_roles(block)
    assert roles is not None
    axes, letter = (roles.rows, "m") if side == "left" else (roles.columns, "n")
    deep = reads_along_depth(block, buffers, side)
    load = operand_load(getattr(roles, side))
    axis = (roles.depth if deep else axes)[-1]
    size = tile.rows if side == "left" else tile.columns
    room = axis.extent if deep or len(axes) > 1 else simplify(ceildiv(axis.extent, size) * size)
    pieces = _lies_in_pieces(load, buffers[load.buffer], axis, room)
    stays = deep and pieces and side == "left"
    return _Copy(f"{letter}k" if stays else f"k{letter}", deep, pieces and deep == stays)


def _lies_in_pieces(load: Load, buffer: Buffer, axis: Iter, room: Expr) -> bool:
    """Whether neighbours along an axis begin at a multiple of a piece and are in it altogether.

    The axis may be several in one, of which the last falls into pieces. Pieces may end behind the
    axis, as far as `room`, where the buffer has elements there.
    """
    flat, extents = in_groups(flat_index(load, buffer), replace(axis, extent=room), PIECE)
    inner = Var(list(extents)[-1])
    start = simplify(flat - inner, extents)
    plain = load.mask is None and inner.name not in free_vars(start)
    whole = prove((axis.extent % PIECE).eq(0)) or (
        prove((room % PIECE).eq(0))
        and all(
            prove(i < size, {axis.name: room})
            for i, size in zip(load.indices, buffer.shape, strict=True)
            if axis.name in free_vars(i)
        )
    )
    return plain and whole and prove((start % PIECE).eq(0), extents)


def _copy_tile(sch: Schedule, name: str, step: str, way: _Copy, tile: Tile) -> None:
    """Copy a tile of an operand to shared memory, neighbours by neighbouring threads."""
    batch, outer, inner = sch.compute_at(name, step)
    sch.set_scope(facts_of(sch.func).block(name).writes[0].buffer, "shared")
    axes = [batch, outer, inner]
    if way.deep and not way.pieces:
        deep, k = sch.split(outer, [None, TURNED[0]])
        wide, n = sch.split(inner, [None, TURNED[1]])
        axes = [batch, wide, deep, n, k]
        sch.reorder(*axes)
    width = [PIECE] if way.pieces else []
    part, thread, *piece = sch.split(sch.fuse(*axes), [None, tile.threads, *width])
    sch.reorder(thread, part, *piece)
    sch.bind(thread, "thread")
    sch.unroll(part)
    for loop in piece:
        sch.vectorize(loop)


def _write_tile(
    sch: Schedule, name: str, grid: str, row_parts: list[int], column_parts: list[int]
) -> None:
    """What follows the sum, by the threads that have it in their registers."""
    _, rows, columns = sch.reverse_compute_at(name, grid)
    m1, y0, y1, m2 = sch.split(rows, row_parts)
    n1, x0, x1, n2 = sch.split(columns, column_parts)
    sch.reorder(y0, x0, y1, x1, m1, m2, n1, n2)
    for loop in (y0, x0, y1, x1):
        sch.bind(loop, "thread")
    for loop in (m1, m2, n1):
        sch.unroll(loop)
    if _writes_pieces(sch, name):
        sch.vectorize(n2)
    else:
        sch.unroll(n2)


def _write_rows(
    sch: Schedule, name: str, grid: str, row_parts: list[int], column_parts: list[int]
) -> None:
    """The same where rows of the result begin anywhere: neighbours by neighbouring threads.

    Words that a thread has side by side would be parts of sectors, each written several times. So
    sums go through shared memory, some rows of the tile at a time.
    """
    facts = facts_of(sch.func)
    (total,) = (
        r.buffer for r in facts.block(name).reads if facts.buffers[r.buffer].scope == "register"
    )
    copy = str(sch.cache_read(name, total, "shared"))
    _, rows, columns = sch.reverse_compute_at(copy, grid)
    part, y0, y1, m2 = sch.split(rows, row_parts)
    n1, x0, x1, n2 = sch.split(columns, column_parts)
    sch.reorder(part, y0, x0, y1, x1, m2, n1, n2)
    for loop in (y0, x0, y1, x1):
        sch.bind(loop, "thread")
    for loop in (m2, n1):
        sch.unroll(loop)
    sch.vectorize(n2)
    threads = row_parts[1] * row_parts[2] * column_parts[1] * column_parts[2]
    own = sch.fuse(*sch.reverse_compute_at(name, part))
    step, thread = sch.split(own, [None, threads])
    sch.reorder(thread, step)
    sch.bind(thread, "thread")
    for loop in (step, part):
        sch.unroll(loop)


def _writes_rows(sch: Schedule, name: str) -> bool:
    """Whether neighbouring columns are neighbours in what a block writes, but not in pieces.

    Of few columns, barriers would take longer than that saves.
    """
    place, to, column = _written(sch, name)
    many = typical_extent(column.extent) >= LEAST_ROW
    return many and flat_stride(place, to, column.name) == 1 and not _writes_pieces(sch, name)


def _writes_pieces(sch: Schedule, name: str) -> bool:
    """Whether a block writes whole pieces, neighbouring columns of the product side by side."""
    place, to, column = _written(sch, name)
    return _lies_in_pieces(place, to, column, column.extent)


def _written(sch: Schedule, name: str) -> tuple[Load, Buffer, Iter]:
    """The place that a block writes, in which buffer, and the columns of it."""
    facts = facts_of(sch.func)
    block = facts.block(name)
    assert isinstance(block.body, Store)
    to = facts.buffers[block.body.buffer]
    return Load(to.name, block.body.indices, to.dtype), to, block.iters[-1]
