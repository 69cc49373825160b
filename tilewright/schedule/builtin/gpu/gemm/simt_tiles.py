"""Which tile a product by threads gets, and how many parts its depth, by what each was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilewright.arith.expr import Expr, as_int, product
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import typical_extent
from tilewright.schedule.analysis.gemm import ProductRoles, operand_load, overlaps, product_roles
from tilewright.target.gpu import GpuTarget

# Rows and columns that lie together in a thread's part of a tile.
PIECE = 4
# The threads of a warp along rows and columns: they read few different words of both operands.
LANES = (4, 8)
# Fewer products for each element than this are not worth a tile.
LEAST_DEPTH = 8
# Fewer rows or columns than this leave most of a tile empty.
LEAST_SIDE = 4
# The depth that is worth a pass over partial sums, for how many tiles of a multiprocessor, and into
# how many parts.
LEAST_PART, MOST_LOAD, MOST_PARTS = 64, 9, 16
# The bytes that a part of an axis is a multiple of, so that pieces are in one part.
ALIGNED_BYTES = 16
# How much more a depth may be by what its parts are rounded up to.
ROUNDED_UP = 1.25
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
    Tile(64, 64, 16, 8, 8, 6, 0.91),
    Tile(64, 64, 16, 16, 16, 3, 0.72),
    Tile(32, 64, 16, 8, 16, 6, 0.72),
    Tile(32, 32, 16, 8, 8, 12, 0.7),
    Tile(16, 32, 16, 4, 8, 16, 0.68),
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
    turns = -(-sums * SUM_THREADS // (target.sm_count * target.warps_per_sm * target.warp_size))
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
    return -(-blocks // target.sm_count)


def _seconds(tile: Tile, sizes: tuple[int, ...], target: GpuTarget) -> float:
    """How long a product takes with a tile, in as many parts as it says."""
    batch, rows, columns, depth = sizes
    load = _load(tile, sizes, target)
    warps = tile.threads // target.warp_size
    # Each scheduler has whole warps, and waits for the one that has most.
    tiles = -(-load * warps // SCHEDULERS) * SCHEDULERS / warps
    resident = max(1, tile.resident - 1)  # as most products have rows along the depth
    few = min(load, resident) * warps <= FEW_WARPS
    rate = BEST * tile.rate * (WITH_FEW if few else 1.0) * target.f32_rate / 2
    work = tiles * tile.rows * tile.columns * depth / tile.parts * target.sm_count
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
    longest, depth = as_int(longest_axis(roles.depth).extent), size_of(roles.depth)
    aligned = ALIGNED_BYTES // operand_load(roles.left).dtype.bytes
    parts = 1
    while (
        longest is not None
        and 2 * parts * tiles <= most * target.sm_count
        and longest % (2 * parts * aligned) == 0
        and -(-depth // (2 * parts * deep)) * 2 * parts * deep <= rounded * depth
        and depth // (2 * parts) >= least
    ):
        parts *= 2
    return parts


def longest_axis(axes: tuple[Iter, ...]) -> Iter:
    """The axis of a sum that is cut into parts: the channels of a convolution."""
    return max(axes, key=lambda it: typical_extent(it.extent))


def size_of(iters: tuple[Iter, ...]) -> int:
    """How many numbers some axes make together, as far as is known."""
    extents: tuple[Expr, ...] = tuple(it.extent for it in iters)
    return typical_extent(simplify(product(extents)))
