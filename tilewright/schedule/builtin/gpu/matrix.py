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
from tilewright.ir.loop.nodes import Buffer, Iter, Store
from tilewright.ir.loop.threads import FRAGMENT
from tilewright.ir.loop.walk import loops, loops_above
from tilewright.schedule.builtin.gpu.matrix_tiles import MatrixTile
from tilewright.schedule.builtin.gpu.product import reads_along_depth, schedule_in_parts
from tilewright.schedule.builtin.structure import (
    Facts,
    facts_of,
    flat_index,
    in_groups,
    reads_of,
    spatial,
    uses,
)
from tilewright.schedule.intrin import turn
from tilewright.schedule.intrin.bulk import bulk_name
from tilewright.schedule.intrin.kinds import kind_of
from tilewright.schedule.intrin.mma import PIECE, ROWS
from tilewright.schedule.products import operand_load, product_roles
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# The rows of tiles that are gone through together.
BAND = 8
# Words that a thread may read of what follows a sum of floats, before it writes any of that.
HELD_WORDS = 64
# Registers that it needs besides its sums, and what it has read.
WORKING = 32
# What a thread writes at once.
PIECE_BYTES = 16


def schedule_matrix(sch: Schedule, name: str, tile: MatrixTile, target: GpuTarget) -> None:
    """Schedule a sum of products and the one block behind it."""
    tiles = partial(_schedule_tiles, sch, tile, _free_words(tile, target))
    schedule_in_parts(sch, name, tile.parts, tiles, target)


def _free_words(tile: MatrixTile, target: GpuTarget) -> int:
    """The registers of a thread that are free when it has all sums."""
    share = target.registers // (tile.threads * tile.resident)
    sums = tile.rows * tile.columns // tile.threads
    return min(share, target.registers_per_thread) - sums - WORKING


def _schedule_tiles(sch: Schedule, tile: MatrixTile, free: int, name: str, reader: str) -> None:
    """Schedule a sum of products, and the block that reads it, tile by tile."""
    facts = facts_of(sch.func)
    block = facts.block(name)
    sides = ("right", "left") if tile.swapped else ("left", "right")
    left, right = (reads_along_depth(block, facts.buffers, side) for side in sides)
    roles = product_roles(block, vectors=True)
    assert roles is not None
    kind = kind_of(*(str(operand_load(x).dtype) for x in (roles.left, roles.right)))
    orders = ("mk" if left else "km", "nk" if right else "kn")
    sch.to_product(name, *tile.sides, *orders, int(tile.swapped))
    high, wide = tile.warp
    m0, y, m1 = sch.split(f"{name}.m", [None, tile.y, high])
    n0, x, n1 = sch.split(f"{name}.n", [None, tile.x, wide])
    k0, k1, k2 = sch.split(f"{name}.k", [None, tile.depth // tile.step, tile.step])
    sch.reorder(f"{name}.b", m0, n0, k0, y, x, k1, m1, n1, k2)
    grid = _in_bands(sch, f"{name}.b", m0, n0)
    sch.bind(grid, "grid")
    for loop in (y, x):
        sch.bind(loop, "warp")
    sch.unroll(k1)
    names = [f"{name}.{side}" for side in ("left", "right")]
    pairs = zip(names, (tile.rows, tile.columns), strict=True)
    whole = (
        tile.grouped
        and tile.engine
        and all(_lies_in_rows(sch, *pair, tile.piece) for pair in pairs)
    )
    for copied in names:
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
    for buffer in _read_ahead(facts_of(sch.func), reader, tile, free):
        sch.hold(reader, buffer, "register")
    sch.annotate(k0, "stages", _stages(sch, k0, tile))


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
    if count is None or count % BAND or count == BAND:
        return str(sch.fuse(batch, rows, columns))
    bands, row = sch.split(rows, [None, BAND])
    sch.reorder(batch, bands, columns, row)
    return str(sch.fuse(batch, bands, columns, row))


def _lies_in_rows(sch: Schedule, name: str, side: int, piece: int) -> bool:
    """Whether tiles of an operand are tiles of a matrix in memory, whose rows begin at pieces.

    Rows may lie in blocks of whole tiles, `side` of them each: see `weights.py`.
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
    side = _writes_side_by_side(sch, name) and wide % turn.GROUP == 0
    if side and not _writes_sectors(sch, name):
        _hand_sums(sch, name, grid, tile, turn.spread_name)
        _write_rows(sch, name, grid, tile)
        return
    turned = side and _writes_pieces(sch, name)
    neighbours = PIECE if turned else 2
    if turned:
        _hand_sums(sch, name, grid, tile, turn.turn_name)
    _, rows, columns = sch.reverse_compute_at(name, grid)
    y, m, eighth, row = sch.split(rows, [tile.y, high // ROWS, 2, ROWS // 2])
    x, n, column, piece = sch.split(columns, [tile.x, wide // (4 * neighbours), 4, neighbours])
    sch.reorder(y, x, row, column, m, eighth, n, piece)
    for loop in (y, x, row, column):
        sch.bind(loop, "thread")
    for loop in (m, eighth, n):
        sch.unroll(loop)
    if tile.swapped:  # neighbours in a row of sums are neighbours in a column of the result
        sch.unroll(piece)
    else:
        sch.vectorize(piece)


def _write_rows(sch: Schedule, name: str, grid: str, tile: MatrixTile) -> None:
    """The same of sums that are spread: a warp has 32 neighbours of a row at a time."""
    _, rows, columns = sch.reverse_compute_at(name, grid)
    high, wide = tile.warp
    y, row = sch.split(rows, [tile.y, high])
    x, n, eighth, pair, one = sch.split(columns, [tile.x, wide // turn.GROUP, 4, 4, 2])
    sch.reorder(y, x, eighth, one, pair, n, row)
    for loop in (y, x, eighth, one, pair):
        sch.bind(loop, "thread")
    for loop in (n, row):
        sch.unroll(loop)


def _read_ahead(facts: Facts, reader: str, tile: MatrixTile, free: int) -> list[str]:
    """Arrays that a thread reads all that it needs of before it writes any of the result.

    A read behind a write waits for it. What follows sums of floats has arrays of the size of the
    result ahead; what follows those of integers, which reads a part of a zero point or a scale for
    each column, all that `free` registers have room for.
    """
    block = facts.block(reader)
    row, column = (it.name for it in spatial(block)[-2:])
    scopes = {r.buffer: facts.buffers[r.buffer] for r in block.reads}
    integers = any(b.scope == FRAGMENT and b.dtype.is_integer for b in scopes.values())
    given = {x for x in reads_of(block) if scopes[x.buffer].scope == "global"}
    wanted = [x for x in given if integers or (uses(x, row) and uses(x, column))]
    words, found = free if integers else HELD_WORDS, []
    for buffer in sorted({x.buffer for x in wanted}):
        (load, *others) = (x for x in given if x.buffer == buffer)
        own = _own_elements(tile, uses(load, row), uses(load, column)) * load.dtype.bits // 32
        if own <= words and not others:
            words -= own
            found.append(buffer)
    return found


def _own_elements(tile: MatrixTile, by_row: bool, by_column: bool) -> int:
    """The elements of an array that a thread reads: one for each of its rows, columns or both."""
    high, wide = tile.warp
    return (high // 8 if by_row else 1) * (wide // 4 if by_column else 1)


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
    y, m = sch.split(rows, [tile.y, high])
    x, n = sch.split(columns, [tile.x, wide])
    sch.reorder(y, x, m, n)
    for loop in (y, x):
        sch.bind(loop, "warp")
    sch.tensorize(sch.blockize(m), way(high, wide, str(facts.buffers[total].dtype)))
