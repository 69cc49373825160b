"""Products of f16 and bf16, and of f32 where those may be rounded, by instructions on matrices.

    grid: (batch, row tile, column tile)
      warp (y, x): C = 0                                 fragments
      for k in steps of the tile's depth, copies some steps ahead
        threads: left, right = tiles of the operands     shared, 16 bytes at a time
        warp (y, x): C += left * right                   16 of the depth at a time
      thread (y, x, lane): result = formulas(C)

A tile of an operand lies in shared memory as the operand does in global memory, so that pieces of
16 bytes move as they are; the instructions read it either way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from tilewright.arith.expr import Load, as_int
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Block, Buffer, Store
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.builtin.gpu.product import (
    LEAST_DEPTH,
    depth_parts,
    reads_along_depth,
    schedule_in_parts,
    size_of,
)
from tilewright.schedule.builtin.structure import (
    Facts,
    facts_of,
    flat_stride,
    reads_of,
    spatial,
)
from tilewright.schedule.intrin import wgmma
from tilewright.schedule.intrin.mma import COLUMNS, DEPTH, PIECE, ROWS, mma_names
from tilewright.schedule.primitives.to_product import MIXED
from tilewright.schedule.products import operand_load, product_roles
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Fewer rows than this leave most of a tile empty, which pays only if columns are neighbours: then
# no other schedule reads them in pieces.
LEAST_ROWS = 4
# The depth that is worth a pass over partial sums.
LEAST_PART = 512
# What a step takes besides, in products of 64 pairs.
STEP_COST = 2048
# Steps in the time of which the elements of a tile are written, while no other tile is computed.
WRITE_STEPS = 2
# Words that a thread may read of what follows the sum, before it writes any of that.
HELD_WORDS = 64
# Elements of a tile's row that is read across it: eight pieces have a bank each.
LEAST_ROW = 64


@dataclass(frozen=True)
class MatrixTile:
    """A tile of the result, the warps along its rows and columns, and how far copies run ahead.

    `rate` is how near it comes to the machine's best, compared with the other ones, and `resident`
    how many of them a multiprocessor has at a time. Those that are `grouped` are for instructions
    of four warps at once.
    """

    rows: int
    columns: int
    y: int
    x: int
    stages: int
    resident: int
    rate: float
    grouped: bool = False
    depth: int = 64
    bytes: int = 2

    def of(self, bytes: int) -> MatrixTile:
        """The tile for elements of so many bytes."""
        return replace(self, depth=self.depth * self.bytes // bytes, bytes=bytes)

    @property
    def sides(self) -> tuple[int, int, int]:
        """Rows, columns and depth."""
        return self.rows, self.columns, self.depth

    @property
    def threads(self) -> int:
        """The threads that compute it."""
        return 32 * self.y * self.x

    @property
    def warp(self) -> tuple[int, int]:
        """The rows and columns of one warp."""
        return self.rows // self.y, self.columns // self.x

    @property
    def shared(self) -> int:
        """The bytes of shared memory that it takes."""
        return (self.rows + self.columns) * self.depth * self.bytes * self.stages

    @property
    def step(self) -> int:
        """The depth of one tile statement."""
        return wgmma.DEPTH if self.grouped else DEPTH * 2 // self.bytes

    @property
    def piece(self) -> int:
        """The elements of 16 bytes."""
        return PIECE * 2 // self.bytes

    def names(self, dtype: str, left: bool, right: bool) -> tuple[str, str]:
        """The intrinsics that start and add to sums, for operands along the depth or not."""
        if self.grouped:
            return wgmma.wgmma_names(dtype, self.columns, "t" if right else "n")
        return mma_names(dtype, *self.warp, ("n" if left else "t") + ("t" if right else "n"))


MATRIX_TILES = (
    MatrixTile(128, 256, 8, 1, 4, 1, 1.4, grouped=True),
    MatrixTile(128, 128, 8, 1, 3, 2, 1.2, grouped=True),
    MatrixTile(64, 128, 4, 1, 4, 2, 0.9, grouped=True),
    MatrixTile(64, 64, 4, 1, 4, 3, 0.6, grouped=True),
    MatrixTile(128, 256, 2, 4, 4, 1, 1.0),
    MatrixTile(128, 128, 2, 2, 3, 2, 0.95),
    MatrixTile(64, 128, 2, 2, 3, 3, 0.7),
    MatrixTile(64, 64, 2, 2, 4, 3, 0.5),
    MatrixTile(32, 64, 2, 2, 4, 4, 0.3),
    MatrixTile(16, 64, 1, 4, 4, 4, 0.2),
)


def matrix_tile_of(
    block: Block, buffers: dict[str, Buffer], target: GpuTarget
) -> MatrixTile | None:
    """The tile for a sum of products that the machine has instructions for, else `None`."""
    roles = product_roles(block, vectors=True)
    if roles is None or block.writes[0].buffer not in buffers:
        return None
    left, right = (operand_load(x).dtype for x in (roles.left, roles.right))
    total = buffers[block.writes[0].buffer].dtype
    known = {s.operands for s in target.matrix_shapes if (s.m, s.n) == (ROWS, COLUMNS)}
    if left != right or str(left) not in known or str(total) != "f32":
        return None
    axes = (roles.batch, roles.rows, roles.columns, roles.depth)
    batch, rows, columns, depth = map(size_of, axes)
    along = reads_along_depth(block, buffers, "left")
    right_load = operand_load(roles.right)
    neighbours = bool(roles.columns) and 1 == flat_stride(
        right_load, buffers[right_load.buffer], roles.columns[-1].name
    )
    few = rows < LEAST_ROWS and (not neighbours or min(columns, depth) < LEAST_ROW)
    turned = not (along and reads_along_depth(block, buffers, "right"))
    if depth < LEAST_DEPTH or columns < LEAST_ROWS or few or (turned and left == F32):
        return None

    def cost(tile: MatrixTile) -> float:
        blocks = batch * -(-rows // tile.rows) * -(-columns // tile.columns)
        turns, size = -(-blocks // target.multiprocessors), tile.rows * tile.columns
        steps = -(-depth // tile.depth) * (size + STEP_COST) / tile.rate
        return turns * (steps + WRITE_STEPS * size / tile.resident)

    grouped = along and any(s.operands == str(left) and s.m == 64 for s in target.matrix_shapes)
    sized = (t.of(left.bytes) for t in MATRIX_TILES)
    fitting = [t for t in sized if t.shared <= target.block_shared]
    fitting = [t for t in fitting if (grouped or not t.grouped) and (along or t.rows >= LEAST_ROW)]
    filled = [t for t in fitting if t.rows < 2 * max(rows, ROWS)]
    return min(filled or fitting, key=cost)


def schedule_matrix(sch: Schedule, name: str, tile: MatrixTile, target: GpuTarget) -> None:
    """Schedule a sum of products and the one block behind it."""
    parts = depth_parts(facts_of(sch.func).block(name), tile.sides, LEAST_PART, target)
    schedule_in_parts(sch, name, parts, partial(_schedule_tiles, sch, tile), target)


def _schedule_tiles(sch: Schedule, tile: MatrixTile, name: str, reader: str) -> None:
    """Schedule a sum of products, and the block that reads it, tile by tile."""
    facts = facts_of(sch.func)
    block = facts.block(name)
    left, right = (reads_along_depth(block, facts.buffers, s) for s in ("left", "right"))
    roles = product_roles(block, vectors=True)
    assert roles is not None
    dtype = str(operand_load(roles.left).dtype)
    orders = ("mk" if left else "km", "nk" if right else "kn")
    mixed = right and tile.warp[1] % MIXED == 0 and _writes_pieces(facts, reader)
    sch.to_product(name, *tile.sides, *orders, mixed)
    high, wide = tile.warp
    m0, y, m1 = sch.split(f"{name}.m", [None, tile.y, high])
    n0, x, n1 = sch.split(f"{name}.n", [None, tile.x, wide])
    k0, k1, k2 = sch.split(f"{name}.k", [None, tile.depth // tile.step, tile.step])
    sch.reorder(f"{name}.b", m0, n0, k0, y, x, k1, m1, n1, k2)
    grid = sch.fuse(f"{name}.b", m0, n0)
    sch.bind(grid, "grid")
    for loop in (y, x):
        sch.bind(loop, "warp")
    sch.unroll(k1)
    for side in ("left", "right"):
        _copy_tile(sch, f"{name}.{side}", k0, tile)
    init = sch.decompose_reduction(name, k0)
    sch.set_scope(facts_of(sch.func).block(name).writes[0].buffer, "fragment")
    zero, step = tile.names(dtype, left, right)
    sch.tensorize(sch.blockize(loops_above(sch.func, init)[-2].name), zero)
    sch.tensorize(sch.blockize(m1), step)
    _write_tile(sch, reader, grid, tile, mixed)
    sch.annotate(k0, "stages", tile.stages)


def _copy_tile(sch: Schedule, name: str, step: str, tile: MatrixTile) -> None:
    """Copy a tile of an operand to shared memory, neighbouring pieces by neighbouring threads."""
    axes = sch.compute_at(name, step)
    sch.set_scope(facts_of(sch.func).block(name).writes[0].buffer, "shared")
    part, thread, piece = sch.split(sch.fuse(*axes), [None, tile.threads, tile.piece])
    sch.reorder(thread, part, piece)
    sch.bind(thread, "thread")
    sch.unroll(part)
    sch.vectorize(piece)


def _writes_pieces(facts: Facts, reader: str) -> bool:
    """Whether what follows the sum writes whole pieces of neighbours along its last axis."""
    block = facts.block(reader)
    assert isinstance(block.body, Store)
    last, size = spatial(block)[-1], as_int(spatial(block)[-1].extent)
    to = Load(block.body.buffer, block.body.indices, block.body.value.dtype)
    near = flat_stride(to, facts.buffers[to.buffer], last.name) == 1
    return near and size is not None and size % PIECE == 0


def _write_tile(sch: Schedule, name: str, grid: str, tile: MatrixTile, mixed: bool) -> None:
    """What follows the sum, by the threads that have it in their registers.

    A thread has eight neighbours where columns are mixed, else two.
    """
    _, rows, columns = sch.reverse_compute_at(name, grid)
    high, wide = tile.warp
    group, each = (MIXED, PIECE) if mixed else (COLUMNS, 2)
    y, m, eighth, row = sch.split(rows, [tile.y, high // ROWS, 2, ROWS // 2])
    x, n, column, near = sch.split(columns, [tile.x, wide // group, group // each, each])
    sch.reorder(y, x, row, column, m, eighth, n, near)
    for loop in (y, x, row, column):
        sch.bind(loop, "thread")
    for loop in (m, eighth, n):
        sch.unroll(loop)
    sch.vectorize(near)
    for buffer in _read_ahead(facts_of(sch.func), name, tile):
        sch.hold(name, buffer, "register")


def _read_ahead(facts: Facts, reader: str, tile: MatrixTile) -> list[str]:
    """Arrays of the size of the result: a thread reads all that it needs before it writes any."""
    block = facts.block(reader)
    point = {it.name for it in spatial(block)[-2:]}
    given = {x for x in reads_of(block) if facts.buffers[x.buffer].scope == "global"}
    whole = [x for x in given if point <= {v for i in x.indices for v in free_vars(i)}]
    words, found = HELD_WORDS, []
    for buffer in sorted({x.buffer for x in whole}):
        (load, *others) = (x for x in given if x.buffer == buffer)
        words -= tile.rows * tile.columns // tile.threads * load.dtype.bits // 32
        if words >= 0 and not others:
            found.append(buffer)
    return found
