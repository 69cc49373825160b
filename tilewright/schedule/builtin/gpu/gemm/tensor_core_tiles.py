"""Which tile a product on tensor cores gets, by what each was measured to take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from tilewright.arith.expr import Call, Var, as_int
from tilewright.arith.operators import CHEAP_CALLS
from tilewright.arith.walk import subexpressions
from tilewright.core.dtypes import F32, DType
from tilewright.ir.loop.nodes import Block, Buffer
from tilewright.schedule.analysis.blocks import flat_stride, value_of
from tilewright.schedule.analysis.gemm import (
    ProductRoles,
    operand_load,
    overlaps,
    product_roles,
    swapped_roles,
)
from tilewright.schedule.builtin.gpu.column_reduction import plan_columns
from tilewright.schedule.builtin.gpu.gemm.simt import reads_along_depth
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import LEAST_DEPTH, depth_parts, size_of
from tilewright.schedule.intrin.nvidia import wgmma
from tilewright.schedule.intrin.nvidia.mma import COLUMNS, DEPTH, PIECE, ROWS, mma_names
from tilewright.schedule.intrin.nvidia.mma_types import BYTE_KINDS, kind_of, sum_type
from tilewright.target.gpu import GpuTarget

# Fewer rows than this leave most of a tile empty, which pays only if columns are neighbours: then
# no other schedule reads them in pieces.
LEAST_ROWS = 4
# The depth that is worth a pass over partial sums.
LEAST_PART = 256
# Elements of a tile's row that is read across it: eight pieces have a bank each.
LEAST_ROW = 64
# The steps of a multiprocessor that make up for the engine's slower start. Where copies run further
# ahead than so many stages, threads are as fast.
ENGINE_STEPS, ENGINE_STAGES = 12, 4
# How much slower steps are where the last tiles are not filled: of tiles that a multiprocessor has
# one at a time, and of others. Threads copy those, not the engine.
EDGE, EDGES = 1.08, 1.3
# Microseconds of an element for a function in what follows the sum: a thread has one after another.
FUNCTION = 0.037
# Microseconds in which an element of the result is written, between a tile and the next in its
# place, and of the launch that adds parts; the bytes of parts that are written and read in one.
WRITE, TURN, LAUNCH, BYTES = 7e-5, 1.0, 1.0, 4e6
# Microseconds that blocks which stay begin later, and of a function where one of several groups has
# it, while others multiply; and how much of the time to write is left then.
BEGIN, BESIDE, WRITTEN = 1.0, 0.065, 0.8
# Microseconds of an element that blocks with equal shares hand over, and of each part of a tile;
# and the tiles of a multiprocessor from which on their steps take longer: no two blocks read the
# same at the same time, and all that they read is more than the L2 has.
HAND, PART, MOST_SHARED = 1.1e-4, 4.8e-5, 2


@dataclass(frozen=True)
class MatrixTile:
    """A tile of the result, the warps along its rows and columns, and how far copies run ahead.

    A multiprocessor has `resident` of them at a time; then each takes `time` for a step of its
    depth, in microseconds, or `window_time` where rows are windows of a convolution, which threads
    copy piece by piece. Those that are `grouped` are for instructions of four warps at once.
    `parts` is how many parts the depth of the product is cut into, `engine` whether whole tiles of
    operands are copied by the engine for that, and `swapped` whether it is a tile of the transposed
    product. Warps may have rows several times, if it `repeats` them. Where blocks are `staying`, it
    is for whole tiles that threads apart copy, and one of so many groups of threads that have tiles
    in turns; `otherwise` is the tile that is taken if those of operands are not whole. With
    `shares`, blocks have equal numbers of steps of all tiles.
    """

    rows: int
    columns: int
    y: int
    x: int
    stages: int
    resident: int
    time: float
    window_time: float = inf
    grouped: bool = False
    depth: int = 64
    bytes: int = 2
    parts: int = 1
    engine: bool = True
    swapped: bool = False
    repeats: int = 1
    staying: int = 0
    shares: bool = False
    otherwise: MatrixTile | None = None

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
    def row_parts(self) -> list[int]:
        """How often all warps have rows, if more than once, and the warps along rows."""
        return [self.repeats, self.y] if self.repeats > 1 else [self.y]

    @property
    def warp(self) -> tuple[int, int]:
        """The rows and columns of one warp, side by side."""
        return self.rows // (self.y * self.repeats), self.columns // self.x

    @property
    def shared(self) -> int:
        """The bytes of shared memory that it takes."""
        return (self.rows + self.columns) * self.depth * self.bytes * self.stages

    @property
    def step(self) -> int:
        """The depth of one tile statement."""
        return wgmma.wgmma_depth(self.bytes) if self.grouped else DEPTH * 2 // self.bytes

    @property
    def piece(self) -> int:
        """The elements of 16 bytes."""
        return PIECE * 2 // self.bytes

    def names(self, kind: str, left: bool, right: bool) -> tuple[str, str]:
        """The intrinsics that start and add to sums, for operands along the depth or not."""
        if self.grouped:
            return wgmma.wgmma_names(
                kind, self.columns, "t" if right else "n", "n" if left else "t"
            )
        return mma_names(kind, *self.warp, ("n" if left else "t") + ("t" if right else "n"))


# Times on an H200, of whole tiles; another GPU is slower or faster at all of them. Of tiles of more
# than 16 rows that are not grouped those of windows are about 1.6 times the others: not measured.
MATRIX_TILES = (
    MatrixTile(128, 256, 8, 1, 4, 1, 0.65, 0.88, grouped=True),
    MatrixTile(128, 192, 8, 1, 5, 1, 0.51, 0.78, grouped=True),
    MatrixTile(128, 128, 8, 1, 6, 1, 0.36, 0.61, grouped=True),
    MatrixTile(128, 128, 8, 1, 3, 2, 0.335, 0.60, grouped=True),
    MatrixTile(128, 64, 8, 1, 4, 2, inf, 0.38, grouped=True),
    MatrixTile(64, 192, 4, 1, 6, 1, 0.37, 0.54, grouped=True),
    MatrixTile(64, 128, 4, 1, 8, 1, 0.24, 0.42, grouped=True),
    MatrixTile(64, 128, 4, 1, 4, 2, 0.20, 0.32, grouped=True),
    MatrixTile(64, 64, 4, 1, 8, 1, 0.16, 0.33, grouped=True),
    MatrixTile(64, 64, 4, 1, 4, 3, 0.143, 0.21, grouped=True),
    MatrixTile(128, 256, 2, 4, 4, 1, 1.3, 2.1),
    MatrixTile(128, 128, 2, 2, 3, 2, 0.635, 1.0),
    MatrixTile(64, 128, 2, 2, 3, 3, 0.40, 0.64),
    MatrixTile(64, 64, 2, 2, 4, 3, 0.20, 0.33),
    MatrixTile(32, 64, 2, 2, 4, 4, 0.14, 0.22),
    MatrixTile(32, 32, 1, 1, 2, 12, 0.12, 0.18),
    MatrixTile(16, 64, 1, 4, 8, 2, 0.09, 0.145),
    MatrixTile(16, 64, 1, 4, 4, 4, 0.085, 0.13),
)
# The same where blocks stay.
STAYING_TILES = (
    MatrixTile(128, 128, 4, 1, 6, 1, 0.345, grouped=True, repeats=2, staying=2),
    MatrixTile(128, 192, 8, 1, 5, 1, 0.485, grouped=True, staying=1),
    MatrixTile(128, 160, 8, 1, 5, 1, 0.40, grouped=True, staying=1),
    MatrixTile(128, 128, 8, 1, 6, 1, 0.33, grouped=True, staying=1),
    MatrixTile(128, 96, 8, 1, 7, 1, 0.255, grouped=True, staying=1),
    MatrixTile(128, 256, 8, 1, 4, 1, 0.69, grouped=True, staying=1, shares=True),
    MatrixTile(128, 128, 8, 1, 6, 1, 0.43, grouped=True, staying=1, shares=True),
)


@dataclass(frozen=True)
class _Work:
    """The sizes of a product, the functions that follow the sum, and if its rows are windows."""

    batch: int
    rows: int
    columns: int
    depth: int
    functions: int = 0
    windows: bool = False

    def swapped(self) -> _Work:
        """The sizes of the transposed product."""
        return replace(self, rows=self.columns, columns=self.rows)

    def load(self, tile: MatrixTile, processors: int) -> tuple[int, int]:
        """How many tiles a multiprocessor has, and the steps of each."""
        load = -(-self._tiles(tile) * tile.parts // processors)
        return load, -(-self.depth // (tile.parts * tile.depth))

    def _tiles(self, tile: MatrixTile) -> int:
        return self.batch * -(-self.rows // tile.rows) * -(-self.columns // tile.columns)

    def time(self, tile: MatrixTile, processors: int) -> float:
        """Microseconds with a tile, but for what all take.

        Places that stay empty are room for copies that a tile does without.
        """
        if tile.staying:
            return self._staying(tile, processors)
        load, steps = self.load(tile, processors)
        before = (load - 1) // tile.resident
        last = max(load - before * tile.resident, (tile.resident + 1) / 2)
        busy = (before * tile.resident + last) * steps * self._step(tile)
        busy += before * TURN + load * tile.rows * tile.columns * WRITE
        if tile.parts == 1:
            elements = tile.rows * tile.columns / tile.threads
            busy += (before + 1) * elements * self.functions * FUNCTION
        size = tile.parts * self.batch * self.rows * self.columns * 8
        return busy + (LAUNCH + size / BYTES if tile.parts > 1 else 0.0)

    def _step(self, tile: MatrixTile) -> float:
        """Microseconds of a step of a tile's depth."""
        if self.windows:
            return tile.window_time * (EDGE if self.columns % tile.columns else 1.0)
        whole = self.rows % tile.rows == self.columns % tile.columns == 0
        return tile.time * (1.0 if whole else EDGE if tile.resident == 1 else EDGES)

    def _staying(self, tile: MatrixTile, processors: int) -> float:
        """The same where blocks stay: what follows a sum, beside the sums of other groups."""
        load, steps = self.load(tile, processors)
        step = self._step(tile)
        function = BESIDE if tile.staying > 1 else FUNCTION
        formulas = tile.rows * tile.columns / tile.threads * self.functions * function
        write = tile.rows * tile.columns * WRITE * (WRITTEN if tile.staying > 1 else 1.0)
        if tile.shares and load > MOST_SHARED:
            return inf
        if tile.shares:
            own = -(-self._tiles(tile) * steps // processors)
            handed = tile.rows * tile.columns * (HAND + PART * steps / own)
            return BEGIN + own * step + handed + load * (formulas + write)
        each = max(steps * step, (steps * step + formulas) / tile.staying) + write
        return BEGIN + (load - 1) * each + steps * step + formulas + write


def matrix_tile_of(
    block: Block, buffers: dict[str, Buffer], target: GpuTarget, after: Sequence[Block] = ()
) -> MatrixTile | None:
    """The tile for a sum of products that the machine has instructions for, else `None`.

    `after` are the blocks that follow it in the same kernel.
    """
    roles = product_roles(block, vectors=True)
    if roles is None or block.writes[0].buffer not in buffers:
        return None
    dtype = operand_load(roles.left).dtype
    if not _is_known(roles, buffers[block.writes[0].buffer].dtype, target):
        return None
    batch, rows, columns, depth = map(
        size_of, (roles.batch, roles.rows, roles.columns, roles.depth)
    )
    windows = overlaps(roles.left, roles.rows, roles.depth)
    work = _Work(batch, rows, columns, depth, sum(map(_functions, after)), windows)
    few = work.depth < LEAST_DEPTH or work.columns < LEAST_ROWS
    if few or _is_thin(work, block, buffers, target):
        return None
    along = tuple(reads_along_depth(block, buffers, side) for side in ("left", "right"))
    fitting = (_rounded if dtype == F32 else _as_they_are)(roles, along, target)
    if not fitting:
        return None
    work = work.swapped() if fitting[0].swapped else work
    filled = [t for t in fitting if t.rows < 2 * max(work.rows, ROWS)]
    cut = [c for t in filled or fitting for c in _in_parts(t, block, target)]
    best = min(cut, key=lambda t: work.time(t, target.sm_count))
    load, steps = work.load(best, target.sm_count)
    pays = best.stages <= ENGINE_STAGES and load * steps > ENGINE_STEPS
    best = replace(best, engine=dtype == F32 or pays)
    if not best.grouped or best.bytes != STAYING_TILES[0].bytes:
        return best
    known = all(as_int(it.extent) is not None for it in block.iters)
    tiles = [
        t
        for t in STAYING_TILES
        if (along[1] or t.columns % LEAST_ROW == 0) and (known or not t.shares)
    ]
    return _or_staying(best, tiles, work, target)


def _or_staying(
    best: MatrixTile, tiles: Sequence[MatrixTile], work: _Work, target: GpuTarget
) -> MatrixTile:
    """The tile for blocks that stay that takes least, before others; a given one if none do."""
    taken = [(work.time(t, target.sm_count), n) for n, t in enumerate(tiles)]
    least = work.time(best, target.sm_count)
    for time, n in sorted(taken, reverse=True):
        if time < least:
            best = replace(tiles[n], otherwise=best)
    return best


def _functions(block: Block) -> int:
    """How many functions that take long there are in what a block computes."""
    called = (e.fn for e in subexpressions(value_of(block)) if isinstance(e, Call))
    return sum(fn not in CHEAP_CALLS for fn in called)


def _as_they_are(
    roles: ProductRoles, along: tuple[bool, ...], target: GpuTarget
) -> list[MatrixTile]:
    """The tiles for operands that are not rounded: of 16 bits, which may lie either way, or of 8.

    Those must lie along the depth.
    """
    dtype = operand_load(roles.left).dtype
    if dtype.bytes == 1 and not all(along):
        return []
    grouped = along[0] and any(s.operands == str(dtype) and s.m == 64 for s in target.mma_shapes)
    sized = [t.of(dtype.bytes) for t in MATRIX_TILES]
    fitting = [t for t in sized if t.shared <= target.max_shared_per_block]
    lying = [
        t
        for t in fitting
        if (along[0] or t.rows >= LEAST_ROW) and (along[1] or t.columns >= LEAST_ROW)
    ]
    return [t for t in lying if grouped or not t.grouped]


def _rounded(roles: ProductRoles, along: tuple[bool, ...], target: GpuTarget) -> list[MatrixTile]:
    """The tiles for operands of f32 that are rounded.

    Both must lie along the depth; instructions of four warps have threads read a left one that does
    not, and of the transposed product that is the right one.
    """
    sized = [t.of(F32.bytes) for t in MATRIX_TILES]
    fitting = [t for t in sized if t.shared <= target.max_shared_per_block]
    grouped = any(s.operands == str(F32) and s.m == 64 for s in target.mma_shapes)
    swapped = along == (True, False)
    own = swapped_roles(roles) if swapped else roles
    whole = [t for t in fitting if t.grouped and grouped and _come_whole(own, t, all(along))]
    if all(along):
        return [t for t in fitting if t in whole or not t.grouped]
    return [replace(t, swapped=swapped) for t in whole] if any(along) else []


def _is_known(roles: ProductRoles, total: DType, target: GpuTarget) -> bool:
    """Whether there are instructions for the types of a product."""
    left, right = kinds = [str(operand_load(x).dtype) for x in (roles.left, roles.right)]
    known = {s.operands for s in target.mma_shapes if (s.m, s.n) == (ROWS, COLUMNS)}
    kind = kind_of(left, right)
    together = left == right or kind in BYTE_KINDS
    return together and {*kinds} <= known and str(total) == sum_type(kind)


def _come_whole(roles: ProductRoles, tile: MatrixTile, along: bool) -> bool:
    """Whether all tiles of both operands are whole ones of matrices in memory.

    The engine copies those, and rounds them; instructions of four warps do not. The left one lies
    along the depth or across it. Columns may be those of several matrices that lie one behind the
    other.
    """
    if len(roles.rows) > 1 or len(roles.columns) > 2 or len(roles.depth) > 1:
        return False
    left = (*roles.rows, *roles.depth) if along else (*roles.depth, *roles.rows)
    sizes = {it.name: tile.depth for it in roles.depth}
    sizes |= {it.name: tile.rows for it in roles.rows}
    sizes |= {it.name: tile.columns for it in roles.columns[-1:]}
    for operand, own in ((roles.left, left), (roles.right, (*roles.columns, *roles.depth))):
        load = operand_load(operand)
        if load.mask is not None or load.indices[-len(own) :] != tuple(Var(it.name) for it in own):
            return False
        if any((as_int(it.extent) or 1) % sizes.get(it.name, 1) for it in own):
            return False
    return True


def _is_thin(work: _Work, block: Block, buffers: dict[str, Buffer], target: GpuTarget) -> bool:
    """Whether there are too few rows for a tile."""
    roles = product_roles(block, vectors=True)
    assert roles is not None
    if work.rows == 1 and plan_columns(block, buffers, target) is not None:
        return True
    right = operand_load(roles.right)
    neighbours = bool(roles.columns) and 1 == flat_stride(
        right, buffers[right.buffer], roles.columns[-1].name
    )
    short = min(work.columns, work.depth) < LEAST_ROW
    return work.rows < LEAST_ROWS and (not neighbours or short)


def _in_parts(tile: MatrixTile, block: Block, target: GpuTarget) -> Iterator[MatrixTile]:
    """A tile with all numbers of parts that the depth may be cut into."""
    rows, columns, depth = tile.sides
    sides = (columns, rows, depth) if tile.swapped else tile.sides
    parts = depth_parts(block, sides, LEAST_PART, target)
    while parts:
        yield replace(tile, parts=parts)
        parts //= 2
