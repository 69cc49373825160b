"""Products of matrices, convolutions among them: tiles in shared memory, smaller ones in registers.

    grid: (batch, row tile, column tile)
      thread (y, x): C = 0                               registers
      for k in steps of the tile's depth, copies some steps ahead
        threads: left, right = tiles of the operands     shared
        thread (y, x): C[8, 8] += left[8] * right[8]
      thread (y, x): result = formulas(C)

Each thread has two by two pieces of four rows and columns, half a tile apart: neighbouring threads
then read neighbouring words of shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tilewright.arith.expr import Expr, as_int, product
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.nodes import Block, Buffer, Iter
from tilewright.schedule.builtin.gpu.points import schedule_sum
from tilewright.schedule.builtin.structure import (
    facts_of,
    flat_stride,
    loop_of,
    reductions,
    typical_extent,
)
from tilewright.schedule.products import operand_load, product_roles
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Rows and columns that lie together in a thread's part of a tile.
PIECE = 4
# Fewer products for each element than this are not worth a tile.
LEAST_DEPTH = 8
# Fewer rows or columns than this leave most of a tile empty.
LEAST_SIDE = 4
# The depth that is worth a pass over partial sums.
LEAST_PART = 128
# What a part of an axis is a multiple of, so that 16 bytes of 2 each are in one part.
ALIGNED_DEPTH = 8
# How far copies run ahead, this step's among them.
STAGES = 3


@dataclass(frozen=True)
class Tile:
    """A tile of the result, its depth, and the threads along its rows and columns.

    `rate` is how near it comes to the machine's best, compared with the other ones.
    """

    rows: int
    columns: int
    depth: int
    y: int
    x: int
    rate: float

    @property
    def sides(self) -> tuple[int, int, int]:
        """Rows, columns and depth."""
        return self.rows, self.columns, self.depth

    @property
    def threads(self) -> int:
        """The threads that compute it."""
        return self.y * self.x


TILES = (
    Tile(128, 128, 8, 16, 16, 1.0),
    Tile(64, 128, 8, 8, 16, 0.85),
    Tile(64, 64, 16, 16, 16, 0.6),
    Tile(32, 64, 16, 8, 16, 0.45),
    Tile(32, 32, 16, 8, 8, 0.3),
    Tile(16, 32, 16, 4, 8, 0.2),
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

    def cost(tile: Tile) -> float:
        parts = depth_parts(block, tile.sides, LEAST_PART, target)
        blocks = parts * batch * -(-rows // tile.rows) * -(-columns // tile.columns)
        turns = -(-blocks // target.multiprocessors)
        return turns * tile.rows * tile.columns / (tile.rate * parts)

    return min(TILES, key=cost)


def depth_parts(block: Block, sides: tuple[int, int, int], least: int, target: GpuTarget) -> int:
    """Into how many parts the depth is cut so that there are tiles for all multiprocessors.

    `sides` are a tile's rows, columns and depth; no part is shorter than `least`.
    """
    high, wide, deep = sides
    roles = product_roles(block, vectors=True)
    assert roles is not None
    batch, rows, columns = map(size_of, (roles.batch, roles.rows, roles.columns))
    tiles = batch * -(-rows // high) * -(-columns // wide)
    longest, depth = as_int(_longest(roles.depth).extent), size_of(roles.depth)
    parts = 1
    while (
        longest is not None
        and 2 * parts * tiles <= target.multiprocessors
        and longest % (2 * parts * ALIGNED_DEPTH) == 0
        and depth % (2 * parts * deep) == 0
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
    parts = depth_parts(facts_of(sch.func).block(name), tile.sides, LEAST_PART, target)
    schedule_in_parts(sch, name, parts, partial(_schedule_tiles, sch, tile), target)


def _schedule_tiles(sch: Schedule, tile: Tile, name: str, reader: str) -> None:
    """Schedule a sum of products, and the block that reads it, tile by tile."""
    facts = facts_of(sch.func)
    block = facts.block(name)
    deep = [reads_along_depth(block, facts.buffers, side) for side in ("left", "right")]
    sch.to_product(name, tile.rows, tile.columns, tile.depth)
    m0, m1, y, m2 = sch.split(f"{name}.m", [None, *_parts(tile.rows, tile.y)])
    n0, n1, x, n2 = sch.split(f"{name}.n", [None, *_parts(tile.columns, tile.x)])
    k0, k1 = sch.split(f"{name}.k", [None, tile.depth])
    sch.reorder(f"{name}.b", m0, n0, k0, y, x, k1, m1, m2, n1, n2)
    for loop in (y, x):
        sch.bind(loop, "thread")
    for loop in (k1, m1, m2, n1):
        sch.unroll(loop)
    sch.vectorize(n2)
    grid = sch.fuse(f"{name}.b", m0, n0)
    sch.bind(grid, "grid")
    for side, along in zip(("left", "right"), deep, strict=True):
        _copy_tile(sch, f"{name}.{side}", k0, along, tile)
    sch.decompose_reduction(name, k0)
    sch.set_scope(facts_of(sch.func).block(name).writes[0].buffer, "register")
    _write_tile(sch, reader, grid, tile)
    sch.annotate(k0, "stages", STAGES)


def _parts(side: int, threads: int) -> list[int]:
    """A side of a tile as pieces, threads, and the rows or columns of a piece."""
    return [side // (threads * PIECE), threads, PIECE]


def reads_along_depth(block: Block, buffers: dict[str, Buffer], side: str) -> bool:
    """Whether neighbouring elements of an operand are neighbours in the sum."""
    roles = product_roles(block, vectors=True)
    assert roles is not None
    load = operand_load(getattr(roles, side))
    return flat_stride(load, buffers[load.buffer], roles.depth[-1].name) == 1


def _copy_tile(sch: Schedule, name: str, step: str, along_depth: bool, tile: Tile) -> None:
    """Copy a tile of an operand to shared memory, neighbours by neighbouring threads."""
    batch, depth, side = sch.compute_at(name, step)
    sch.set_scope(facts_of(sch.func).block(name).writes[0].buffer, "shared")
    if along_depth:
        sch.reorder(batch, side, depth)
        depth, side = side, depth
    part, thread = sch.split(sch.fuse(batch, depth, side), [None, tile.threads])
    sch.reorder(thread, part)
    sch.bind(thread, "thread")
    sch.unroll(part)


def _write_tile(sch: Schedule, name: str, grid: str, tile: Tile) -> None:
    """What follows the sum, by the threads that have it in their registers."""
    _, rows, columns = sch.reverse_compute_at(name, grid)
    m1, y, m2 = sch.split(rows, _parts(tile.rows, tile.y))
    n1, x, n2 = sch.split(columns, _parts(tile.columns, tile.x))
    sch.reorder(y, x, m1, m2, n1, n2)
    for loop in (y, x):
        sch.bind(loop, "thread")
    for loop in (m1, m2, n1, n2):
        sch.unroll(loop)
