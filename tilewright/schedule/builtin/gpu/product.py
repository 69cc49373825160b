"""Products of matrices, convolutions among them: tiles in shared memory, smaller ones in registers.

    grid: (batch, row tile, column tile)
      thread (y, x): C = 0                               registers
      for k in steps of the tile's depth, copies some steps ahead
        threads: left, right = tiles of the operands     shared
        thread (y, x): C[8, 8] += left[8] * right[8]
      thread (y, x): result = formulas(C)

A thread has pieces of four rows and columns, neighbouring threads neighbouring ones: they read
neighbouring words of shared memory. A left operand that lies along the depth stays so; then threads
have single rows, and read pieces of those. See `operands.py` for what is turned before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from tilewright.arith.expr import Expr, Load, Var, as_int, ceildiv, const, product
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, Buffer, Iter, Store
from tilewright.ir.loop.threads import RESIDENT
from tilewright.schedule.builtin.gpu.points import schedule_sum
from tilewright.schedule.builtin.structure import (
    facts_of,
    flat_stride,
    in_groups,
    loop_of,
    reductions,
    typical_extent,
)
from tilewright.schedule.products import ProductRoles, operand_load, overlaps, product_roles
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Rows and columns that lie together in a thread's part of a tile.
PIECE = 4
# The threads of a warp along rows and columns: they read few different words of both operands.
LANES = (4, 8)
# Fewer products for each element than this are not worth a tile.
LEAST_DEPTH = 8
# Fewer rows or columns than this leave most of a tile empty.
LEAST_SIDE = 4
# As many columns as are worth a way through shared memory, where their rows begin anywhere: 50257
# gain 8 %; 197, with a mask and a depth of 64, take 1.8 times as long (vit_b16, batch 32).
LEAST_ROW = 1024
# The depth that is worth a pass over partial sums, for how many tiles of a multiprocessor, and into
# how many parts.
LEAST_PART, MOST_LOAD, MOST_PARTS = 64, 9, 8
# The bytes that a part of an axis is a multiple of, so that pieces are in one part.
ALIGNED_BYTES = 16
# How much more a depth may be by what its parts are rounded up to.
ROUNDED_UP = 1.25
# The words along the depth, and across it, that threads of a warp turn on their way: those along it
# lie side by side in memory, those across it in banks of their own.
TURNED = (4, 8)
# How far copies run ahead, this step's among them.
STAGES = 4
# How near threads come to the machine's best, by how much less where a multiprocessor has no more
# warps than these; how many of its parts have warps of their own.
BEST, WITH_FEW, FEW_WARPS, SCHEDULERS = 0.74, 0.93, 8, 4
# Seconds of a step of windows, of a tile that has a multiprocessor to itself: words are copied one
# by one, each with a place to compute and a test (0.4 to 0.9 us in silero_vad, batch 32). Several
# take as much longer: 54 steps of 100 tiles take 31 us, 14 steps of 400 take 40.
WINDOWS_STEP = 0.5e-6
# Seconds of a tile's begin and end, of the launch that adds parts; bytes of those in a second.
TURN, LAUNCH, PARTS_RATE = 1.5e-6, 2e-6, 8e12
# Rows or columns below which most of a tile is empty, so that a sum may do better by itself: then
# the threads that have one, seconds of what each of them reads in turn, of a block's begin, and
# bytes in a second.
FEW_SIDE, SUM_THREADS, SUM_STEP, SUM_BEGIN, SUM_RATE = 16, 128, 0.4e-6, 1.2e-9, 5e12


@dataclass(frozen=True)
class Tile:
    """A tile of the result, its depth, and the threads along its rows and columns.

    A multiprocessor has `resident` of them at a time. `rate` is how near they come to the machine's
    best, compared with the other ones; `parts` is how many the depth of the product is cut into.
    """

    rows: int
    columns: int
    depth: int
    y: int
    x: int
    resident: int
    rate: float
    parts: int = 1

    @property
    def sides(self) -> tuple[int, int, int]:
        """Rows, columns and depth."""
        return self.rows, self.columns, self.depth

    @property
    def threads(self) -> int:
        """The threads that compute it."""
        return self.y * self.x

    def row_parts(self, piece: int) -> list[int]:
        """Its rows: as many as a thread has, warps, threads of a warp, rows side by side."""
        return [self.rows // (self.y * piece), self.y // LANES[0], LANES[0], piece]

    def column_parts(self) -> list[int]:
        """The same of its columns."""
        return [self.columns // (self.x * PIECE), self.x // LANES[1], LANES[1], PIECE]


# By what products of many sizes took on an H200.
TILES = (
    Tile(256, 128, 16, 16, 16, 1, 1.0),
    Tile(128, 128, 16, 16, 16, 2, 0.98),
    Tile(64, 128, 16, 8, 16, 4, 0.9),
    Tile(128, 64, 16, 16, 8, 4, 0.9),
    Tile(64, 64, 16, 8, 8, 6, 0.88),
    Tile(64, 64, 16, 16, 16, 3, 0.72),
    Tile(32, 64, 16, 8, 16, 6, 0.7),
    Tile(32, 32, 16, 8, 8, 12, 0.7),
    Tile(16, 32, 16, 4, 8, 16, 0.5),
)


def product_of(block: Block, target: GpuTarget) -> Tile | None:
    """The tile for a sum of products, `None` if a block is none or is better off without."""
    roles = product_roles(block)
    if roles is None:
        return None
    axes = (roles.batch, roles.rows, roles.columns, roles.depth)
    batch, rows, columns, depth = map(size_of, axes)
    if depth < LEAST_DEPTH or min(rows, columns) < LEAST_SIDE:
        return None
    cut = [c for t in TILES for c in _in_parts(_stepping(t, depth), block, target)]
    sizes = (batch, rows, columns, depth)
    best = min(cut, key=lambda t: _seconds(t, sizes, target))
    if not _are_windows(roles) or _load(best, sizes, target) > 1:
        return best
    alike = [t for t in cut if replace(t, parts=best.parts) == best]
    alone = [t for t in alike if _load(t, sizes, target) == 1]
    return min(alone, key=lambda t: _alone_seconds(t, sizes, target))


def _are_windows(roles: ProductRoles) -> bool:
    """Whether an operand is windows of an array, perhaps one for each, with edges that are zero."""
    sides = ((roles.left, roles.rows), (roles.right, roles.columns))
    return any(
        overlaps(operand, axes, roles.depth) or operand_load(operand).mask is not None
        for operand, axes in sides
    )


def sums_apart(block: Block, tile: Tile, target: GpuTarget) -> bool:
    """Whether sums over windows take less, each by a group of threads, than with a tile."""
    roles = product_roles(block)
    assert roles is not None
    axes = (roles.batch, roles.rows, roles.columns, roles.depth)
    batch, rows, columns, depth = sizes = tuple(map(size_of, axes))
    if min(rows, columns) >= FEW_SIDE or not _are_windows(roles):
        return False
    sums = batch * rows * columns
    turns = -(-sums * SUM_THREADS // (target.multiprocessors * target.warps * target.warp))
    reads = sums * depth * 2 * operand_load(roles.left).dtype.bytes
    apart = turns * -(-depth // SUM_THREADS) * SUM_STEP + sums * SUM_BEGIN + reads / SUM_RATE
    return apart < _alone_seconds(tile, sizes, target)


def _stepping(tile: Tile, depth: int) -> Tile:
    """A tile with a depth of which a product has more than one.

    Of a single step LLVM makes no loop: it reads all of both tiles before it multiplies.
    """
    return tile if depth > tile.depth else replace(tile, depth=tile.depth // 2)


def _in_parts(tile: Tile, block: Block, target: GpuTarget) -> Iterator[Tile]:
    """A tile with all numbers of parts that the depth may be cut into."""
    most = depth_parts(block, tile.sides, LEAST_PART, target, MOST_LOAD, ROUNDED_UP)
    parts = min(MOST_PARTS, most)
    while parts:
        yield replace(tile, parts=parts)
        parts //= 2


def _load(tile: Tile, sizes: tuple[int, ...], target: GpuTarget) -> int:
    """How many tiles a multiprocessor has."""
    batch, rows, columns, _ = sizes
    blocks = tile.parts * batch * -(-rows // tile.rows) * -(-columns // tile.columns)
    return -(-blocks // target.multiprocessors)


def _seconds(tile: Tile, sizes: tuple[int, ...], target: GpuTarget) -> float:
    """How long a product takes with a tile, in as many parts as it says."""
    batch, rows, columns, depth = sizes
    load = _load(tile, sizes, target)
    warps = tile.threads // target.warp
    # Each scheduler has whole warps, and waits for the one that has most.
    tiles = -(-load * warps // SCHEDULERS) * SCHEDULERS / warps
    resident = max(1, tile.resident - 1)  # as most products have rows along the depth
    few = min(load, resident) * warps <= FEW_WARPS
    rate = BEST * tile.rate * (WITH_FEW if few else 1.0) * target.f32_rate / 2
    work = tiles * tile.rows * tile.columns * depth / tile.parts * target.multiprocessors
    added = LAUNCH + tile.parts * batch * rows * columns * 8 / PARTS_RATE
    turns = -(-load // resident)
    return work / rate + turns * TURN + (added if tile.parts > 1 else 0.0)


def _alone_seconds(tile: Tile, sizes: tuple[int, ...], target: GpuTarget) -> float:
    """The same of windows, with tiles that are no more than there are multiprocessors."""
    steps = -(-sizes[-1] // (tile.parts * tile.depth))
    taken = steps * WINDOWS_STEP + TURN + (LAUNCH if tile.parts > 1 else 0.0)
    return max(taken, _seconds(tile, sizes, target))


def depth_parts(
    block: Block,
    sides: tuple[int, int, int],
    least: int,
    target: GpuTarget,
    most: int = 1,
    rounded: float = 1.0,
) -> int:
    """Into how many parts the depth is cut so that there are tiles for all multiprocessors.

    `sides` are a tile's rows, columns and depth; no part is shorter than `least`, and there are at
    most so many tiles for each multiprocessor. Parts that are no multiple of a tile's depth are
    rounded up, all of them to no more than `rounded` times the depth.
    """
    high, wide, deep = sides
    roles = product_roles(block, vectors=True)
    assert roles is not None
    batch, rows, columns = map(size_of, (roles.batch, roles.rows, roles.columns))
    tiles = batch * -(-rows // high) * -(-columns // wide)
    longest, depth = as_int(_longest(roles.depth).extent), size_of(roles.depth)
    aligned = ALIGNED_BYTES // operand_load(roles.left).dtype.bytes
    parts = 1
    while (
        longest is not None
        and 2 * parts * tiles <= most * target.multiprocessors
        and longest % (2 * parts * aligned) == 0
        and -(-depth // (2 * parts * deep)) * 2 * parts * deep <= rounded * depth
        and depth // (2 * parts) >= least
    ):
        parts *= 2
    return parts


def _longest(axes: tuple[Iter, ...]) -> Iter:
    """The axis of a sum that is cut into parts: the channels of a convolution."""
    return max(axes, key=lambda it: typical_extent(it.extent))


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
    number, _ = sch.split(loop_of(_longest(tuple(reductions(block)))), [parts, None])
    part = sch.rfactor(name, number)
    tiles(part, sch.cache_write(part, "global"))
    schedule_sum(sch, name, target, parts=True)


def size_of(iters: tuple[Iter, ...]) -> int:
    """How many numbers some axes make together, as far as is known."""
    extents: tuple[Expr, ...] = tuple(it.extent for it in iters)
    return typical_extent(simplify(product(extents)))


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
    sch.annotate(grid, RESIDENT, tile.resident if lean else max(1, tile.resident - 1))
    _copy_tile(sch, f"{name}.left", k0, left, tile)
    _copy_tile(sch, f"{name}.right", k0, right, tile)
    sch.decompose_reduction(name, k0)
    sch.set_scope(facts_of(sch.func).block(name).writes[0].buffer, "register")
    write = _write_rows if _writes_rows(sch, reader) else _write_tile
    write(sch, reader, grid, rows, columns)
    sch.annotate(k0, "stages", STAGES)


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
    flat: Expr = const(0)
    for size, index in zip(buffer.shape, load.indices, strict=True):
        flat = flat * size + index
    flat, extents = in_groups(flat, replace(axis, extent=room), PIECE)
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
