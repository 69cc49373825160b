"""Products of f16, bf16 and 8-bit integers, and of f32 if rounded, by instructions on matrices.

    grid: (batch, row tile, column tile)
      warp (y, x): C = 0                                 fragments
      for k in steps of the tile's depth, copies some steps ahead
        threads: left, right = tiles of the operands     shared, 16 bytes at a time
        warp (y, x): C += left * right                   32 bytes of the depth at a time
      thread (y, x, lane): result = formulas(C)

A tile of an operand lies in shared memory as the operand does in global memory, so that pieces of
16 bytes move as they are; the instructions read it either way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Load, Var, as_int
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.annotations import (
    MIN_BLOCKS_PER_SM,
    PERSISTENT,
    PINGPONG,
    PIPELINE_STAGES,
    STREAM_K,
    WARP_SPECIALIZED,
)
from tilewright.ir.loop.nodes import Buffer, Iter, Store
from tilewright.ir.loop.thread_mapping import FRAGMENT
from tilewright.ir.loop.walk import loops, loops_above
from tilewright.schedule.analysis.blocks import (
    Facts,
    facts_of,
    flat_index,
    in_groups,
    reads_of,
    spatial,
    uses,
)
from tilewright.schedule.analysis.gemm import operand_load, product_roles
from tilewright.schedule.builtin.gpu.gemm.simt import reads_along_depth, schedule_in_parts
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import MatrixTile
from tilewright.schedule.intrin.nvidia import fragment_shuffle
from tilewright.schedule.intrin.nvidia.mma import PIECE, ROWS
from tilewright.schedule.intrin.nvidia.mma_types import kind_of
from tilewright.schedule.intrin.nvidia.tma import bulk_name
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# The most rows of tiles that are gone through together.
BAND = 8
# Words that a thread may read of what follows a sum of floats, before it writes any of that.
HELD_WORDS = 64
# Registers that it needs besides its sums, and what it has read.
WORKING = 32
# What a thread writes at once.
PIECE_BYTES = 16


def schedule_matrix(sch: Schedule, name: str, tile: MatrixTile, target: GpuTarget) -> None:
    """Schedule a sum of products and the one block behind it."""
    while tile.otherwise is not None and not _may_stay(sch, name, tile):
        tile = tile.otherwise
    tiles = partial(_schedule_tiles, sch, tile, target)
    schedule_in_parts(sch, name, tile.parts, tiles, target)


def _may_stay(sch: Schedule, name: str, tile: MatrixTile) -> bool:
    """Whether all tiles of both operands are tiles of matrices in memory.

    Pairs of results, in rows far from each other, would hold up the few warps that write them.
    """
    reader = facts_of(sch.func).blocks[-1].name
    if _writes_sectors(sch, reader) and not _writes_pieces(sch, reader):
        return False
    trial = Schedule(sch.func)
    _to_product(trial, tile, name)
    return _lie_in_rows(trial, tile, name)


def _lie_in_rows(sch: Schedule, tile: MatrixTile, name: str) -> bool:
    sides = (("left", tile.rows), ("right", tile.columns))
    return all(_lies_in_rows(sch, f"{name}.{side}", size, tile.piece) for side, size in sides)


def _to_product(sch: Schedule, tile: MatrixTile, name: str) -> tuple[bool, bool]:
    """Bring a sum of products into that form; whether the operands lie along the depth."""
    facts = facts_of(sch.func)
    sides = ("right", "left") if tile.swapped else ("left", "right")
    left, right = (reads_along_depth(facts.block(name), facts.buffers, s) for s in sides)
    orders = ("mk" if left else "km", "nk" if right else "kn")
    sch.to_product(name, *tile.sides, *orders, int(tile.swapped))
    return left, right


def _schedule_tiles(
    sch: Schedule, tile: MatrixTile, target: GpuTarget, name: str, reader: str
) -> None:
    """Schedule a sum of products, and the block that reads it, tile by tile."""
    roles = product_roles(facts_of(sch.func).block(name), vectors=True)
    assert roles is not None
    kind = kind_of(*(str(operand_load(x).dtype) for x in (roles.left, roles.right)))
    left, right = _to_product(sch, tile, name)
    high, wide = tile.warp
    m0, *again, y, m1 = sch.split(f"{name}.m", [None, *tile.row_parts, high])
    n0, x, n1 = sch.split(f"{name}.n", [None, tile.x, wide])
    k0, k1, k2 = sch.split(f"{name}.k", [None, tile.depth // tile.step, tile.step])
    sch.reorder(f"{name}.b", m0, n0, k0, y, x, k1, *again, m1, n1, k2)
    grid = _in_bands(sch, f"{name}.b", m0, n0)
    sch.bind(grid, "grid")
    for loop in (y, x):
        sch.bind(loop, "warp")
    for loop in (k1, *again):
        sch.unroll(loop)
    whole = tile.grouped and tile.engine and _lie_in_rows(sch, tile, name)
    for copied in (f"{name}.left", f"{name}.right"):
        if whole:
            _copy_whole(sch, copied, k0)
        else:
            _copy_tile(sch, copied, k0, tile)
    init = sch.decompose_reduction(name, k0)
    sch.set_scope(facts_of(sch.func).block(name).writes[0].buffer, "fragment")
    zero, step = tile.names(kind, left, right)
    sch.tensorize(sch.blockize(loops_above(sch.func, init)[-2].name), zero)
    sch.tensorize(sch.blockize(m1), step)
    _write_tile(sch, reader, grid, tile)
    for buffer in _read_ahead(facts_of(sch.func), reader, tile, _free_words(tile, target)):
        sch.hold(reader, buffer, "register")
    if tile.staying:
        blocks = STREAM_K if tile.shares else PERSISTENT
        sch.annotate(grid, blocks.key, target.sm_count)
        sch.annotate(grid, PINGPONG.key, tile.staying)
        sch.annotate(grid, MIN_BLOCKS_PER_SM.key, 1)
        sch.annotate(k0, PIPELINE_STAGES.key, tile.stages)
        sch.annotate(k0, WARP_SPECIALIZED.key, 1)
    else:
        sch.annotate(k0, PIPELINE_STAGES.key, _stages(sch, k0, tile))


def _stages(sch: Schedule, step: str, tile: MatrixTile) -> int:
    """How far copies run ahead: no room is taken for steps that there are not.

    A step that is left under way keeps its room for one more.
    """
    (steps,) = (as_int(loop.extent) for loop in loops(sch.func.body) if loop.name == step)
    return min(tile.stages, (steps or tile.stages) + 1 + tile.grouped)


def _in_bands(sch: Schedule, batch: str, rows: str, columns: str) -> str:
    """One loop over all tiles, those of several rows column by column.

    Tiles that run at the same time then share both operands: fewer bytes pass the L2.
    """
    (count,) = (as_int(loop.extent) for loop in loops(sch.func.body) if loop.name == rows)
    band = max(n for n in range(1, BAND + 1) if (count or 1) % n == 0)
    if band == 1:
        return str(sch.fuse(batch, rows, columns))
    bands, row = sch.split(rows, [None, band])
    sch.reorder(batch, bands, columns, row)
    return str(sch.fuse(batch, bands, columns, row))


def _lies_in_rows(sch: Schedule, name: str, side: int, piece: int) -> bool:
    """Whether tiles of an operand are tiles of a matrix in memory, whose rows begin at pieces.

    Rows may lie in blocks of whole tiles, `side` of them each: see
    `schedule/builtin/gpu/weight_layout.py`.
    """
    facts = facts_of(sch.func)
    block = facts.block(name)
    assert isinstance(block.body, Store)
    load = block.body.value
    assert isinstance(load, Load)
    if load.mask is not None or len(load.indices) < 2:
        return False
    _, row, column = (Var(it.name) for it in block.iters)
    *rest, above, last = load.indices
    size, width = facts.buffers[load.buffer].shape[-2:]
    if prove((size % side).eq(0)) and rest and (rest[-1], above) == (row // size, row % size):
        rest, above = rest[:-1], row
    starts = [simplify(last - column), simplify(above - row)]
    inner = {row.name, column.name}
    return not any(free_vars(e) & inner for e in (*rest, *starts)) and prove((width % piece).eq(0))


def _copy_whole(sch: Schedule, name: str, step: str) -> None:
    """Have a tile of an operand copied to shared memory by the engine for that."""
    one, rows, _ = sch.compute_at(name, step)
    sch.unroll(one)
    buffer = facts_of(sch.func).block(name).writes[0].buffer
    sch.set_scope(buffer, "shared")
    dtype = str(facts_of(sch.func).buffers[buffer].dtype)
    sides = [as_int(loop.extent) or 0 for loop in loops_above(sch.func, name)[-2:]]
    sch.tensorize(sch.blockize(rows), bulk_name(dtype, *sides))


def _copy_tile(sch: Schedule, name: str, step: str, tile: MatrixTile) -> None:
    """Copy a tile of an operand to shared memory, neighbouring pieces by neighbouring threads."""
    axes = sch.compute_at(name, step)
    sch.set_scope(facts_of(sch.func).block(name).writes[0].buffer, "shared")
    part, thread, piece = sch.split(sch.fuse(*axes), [None, tile.threads, tile.piece])
    sch.reorder(thread, part, piece)
    sch.bind(thread, "thread")
    sch.unroll(part)
    sch.vectorize(piece)


def _write_tile(sch: Schedule, name: str, grid: str, tile: MatrixTile) -> None:
    """What follows the sum, by the threads that have it in their registers."""
    high, wide = tile.warp
    side = _writes_side_by_side(sch, name) and wide % fragment_shuffle.GROUP == 0
    if side and not _writes_sectors(sch, name):
        _hand_sums(sch, name, grid, tile, fragment_shuffle.spread_name)
        _write_rows(sch, name, grid, tile)
        return
    turned = side and _writes_pieces(sch, name)
    neighbours = PIECE if turned else 2
    if turned:
        _hand_sums(sch, name, grid, tile, fragment_shuffle.turn_name)
    _, rows, columns = sch.reverse_compute_at(name, grid)
    *again, y, m, eighth, row = sch.split(rows, [*tile.row_parts, high // ROWS, 2, ROWS // 2])
    x, n, column, piece = sch.split(columns, [tile.x, wide // (4 * neighbours), 4, neighbours])
    sch.reorder(y, x, row, column, *again, m, eighth, n, piece)
    for loop in (y, x, row, column):
        sch.bind(loop, "thread")
    for loop in (*again, m, eighth, n):
        sch.unroll(loop)
    if tile.swapped:  # neighbours in a row of sums are neighbours in a column of the result
        sch.unroll(piece)
    else:
        sch.vectorize(piece)


def _write_rows(sch: Schedule, name: str, grid: str, tile: MatrixTile) -> None:
    """The same of sums that are spread: a warp has 32 neighbours of a row at a time."""
    _, rows, columns = sch.reverse_compute_at(name, grid)
    high, wide = tile.warp
    *again, y, row = sch.split(rows, [*tile.row_parts, high])
    x, n, eighth, pair, one = sch.split(columns, [tile.x, wide // fragment_shuffle.GROUP, 4, 4, 2])
    sch.reorder(y, x, eighth, one, pair, *again, n, row)
    for loop in (y, x, eighth, one, pair):
        sch.bind(loop, "thread")
    for loop in (*again, n, row):
        sch.unroll(loop)


def _read_ahead(facts: Facts, reader: str, tile: MatrixTile, free: int) -> list[str]:
    """Arrays that a thread reads all that it needs of before it writes any of the result.

    A read behind a write waits for it. What follows sums of floats has arrays of the size of the
    result ahead, and where blocks stay, so that a scheduler has few warps, those of a value for
    each column too; what follows sums of integers, which reads a part of a zero point or a scale
    for each column, all that `free` registers have room for.
    """
    block = facts.block(reader)
    row, column = (it.name for it in spatial(block)[-2:])
    scopes = {r.buffer: facts.buffers[r.buffer] for r in block.reads}
    integers = any(b.scope == FRAGMENT and b.dtype.is_integer for b in scopes.values())
    given = {x for x in reads_of(block) if scopes[x.buffer].scope == "global"}
    whole = {x.buffer for x in given if uses(x, row) and uses(x, column)}
    more = {x.buffer for x in given if integers or (tile.staying and uses(x, column))} - whole
    words, found = free if integers else HELD_WORDS, []
    for buffer in (*sorted(whole), *sorted(more)):
        (load, *others) = (x for x in given if x.buffer == buffer)
        own = _own_elements(tile, uses(load, row), uses(load, column)) * load.dtype.bits // 32
        if own <= words and not others:
            words -= own
            found.append(buffer)
    return found


def _free_words(tile: MatrixTile, target: GpuTarget) -> int:
    """The registers of a thread that are free when it has all sums."""
    share = target.registers_per_sm // (tile.threads * tile.resident)
    sums = tile.rows * tile.columns // tile.threads
    return min(share, target.registers_per_thread) - sums - WORKING


def _own_elements(tile: MatrixTile, by_row: bool, by_column: bool) -> int:
    """The elements of an array that a thread reads: one for each of its rows, columns or both."""
    high, wide = tile.warp
    rows = high // 8 * tile.repeats
    return (rows if by_row else 1) * (wide // 4 if by_column else 1)


def _writes_side_by_side(sch: Schedule, name: str) -> bool:
    """Whether eight columns of the product are neighbours in what a block writes.

    Columns may be several axes in one, of which the last falls into eights.
    """
    place, to, column = _written(sch, name)
    flat, extents = in_groups(flat_index(place, to), column, PIECE)
    return stride_of(flat, list(extents)[-1]) == 1


def _writes_sectors(sch: Schedule, name: str) -> bool:
    """Whether eight columns of the product begin where a sector of what a block writes may."""
    return prove((_written(sch, name)[2].extent % PIECE).eq(0))


def _writes_pieces(sch: Schedule, name: str) -> bool:
    """Whether eight columns are 16 bytes: pairs of more than 16 bits are whole sectors as are."""
    return _written(sch, name)[1].dtype.bytes * PIECE <= PIECE_BYTES


def _written(sch: Schedule, name: str) -> tuple[Load, Buffer, Iter]:
    """Where a block writes, and the columns of the product."""
    facts = facts_of(sch.func)
    block = facts.block(name)
    assert isinstance(block.body, Store)
    to = facts.buffers[block.body.buffer]
    return Load(to.name, block.body.indices, to.dtype), to, block.iters[-1]


def _hand_sums(
    sch: Schedule, name: str, grid: str, tile: MatrixTile, way: Callable[[int, int, str], str]
) -> None:
    """Let a block read sums that threads have handed around."""
    facts = facts_of(sch.func)
    (total,) = (
        r.buffer for r in facts.block(name).reads if facts.buffers[r.buffer].scope == FRAGMENT
    )
    copy = sch.cache_read(name, total, FRAGMENT)
    _, rows, columns = sch.reverse_compute_at(copy, grid)
    high, wide = tile.warp
    *again, y, m = sch.split(rows, [*tile.row_parts, high])
    x, n = sch.split(columns, [tile.x, wide])
    sch.reorder(y, x, *again, m, n)
    for loop in (y, x):
        sch.bind(loop, "warp")
    for loop in again:
        sch.unroll(loop)
    sch.tensorize(sch.blockize(m), way(high, wide, str(facts.buffers[total].dtype)))
