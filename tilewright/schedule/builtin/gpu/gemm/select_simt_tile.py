"""Which tile a GEMM on CUDA cores (SIMT) gets, and which split-K factor, by estimated times."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Block, Buffer
from tilewright.schedule.analysis.gemm import (
    GemmAxes,
    is_im2col,
    match_gemm,
    operand_load,
    size_of,
)
from tilewright.schedule.builtin.gpu.gemm.operand_copy import MN_MAJOR, copy_of
from tilewright.schedule.builtin.gpu.gemm.simt_cost import SimtShape, Windows
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import (
    MIN_K,
    MIN_SIDE,
    SIMT_TILES,
    VECTOR_ELEMENTS,
    WORKING_REGISTERS,
    SimtTile,
)
from tilewright.schedule.builtin.gpu.gemm.split_k import split_k_factors
from tilewright.target.calibration.sm_90a import SIMT
from tilewright.target.gpu import GpuTarget

# The K that is worth a pass over partial sums, for how many tiles per SM, and the largest factor.
MIN_SPLIT_K, MAX_TILES_PER_SM, MAX_SPLIT_K = 32, 18, 64
# The tiles for each SM where few rows or columns make the partial sums small.
MAX_TILES_PER_SM_OF_FEW_ROWS = 36
# The terms that are summed one after another where few rows or columns are bound by the bytes of
# their operands, and the time that shorter sums may take besides, as a part of the product's.
SHORT_SUM, SHORT_SUMS_SHARE = 512, 0.05
# Registers of a thread for each word that it copies by itself.
COPY_REGISTERS = 4
# Times of what is around the tiles, measured on an H200.
TIMES = SIMT


@dataclass(frozen=True)
class SimtTiles:
    """The tiles of a GEMM, and which of them is taken by default."""

    default: SimtTile
    tiles: tuple[SimtTile, ...]
    shape: SimtShape
    target: GpuTarget

    def seconds(self, tile: SimtTile) -> float:
        """The estimated time with a tile."""
        return self.shape.seconds(tile, self.target)


def simt_tiles_of(
    block: Block,
    buffers: dict[str, Buffer],
    target: GpuTarget,
    transposed: Collection[str] = (),
) -> SimtTiles | None:
    """The tiles for a GEMM, `None` if a block is none or is better off without.

    Some operands may be `transposed` before, and MN-major then.
    """
    gemm = match_gemm(block)
    if gemm is None:
        return None
    m, n, k = map(size_of, (gemm.m, gemm.n, gemm.k))
    if k < MIN_K or min(m, n) < MIN_SIDE:
        return None
    fitting = [t for tile in SIMT_TILES if (t := tile.on(target)) is not None]
    if has_im2col(gemm) and not target.has("cp.async"):
        # What is copied word by word waits in registers.
        limit = target.registers_per_thread
        fitting = [t for t in fitting if _registers_of_words(t) + t.words <= limit]
    split = [c for t in fitting for c in _with_split_k(_looping(t, k), block, target)]
    shape = simt_shape(block, buffers, transposed)
    best = min(split, key=lambda t: shape.seconds(t, target))
    best = _with_short_sums(best, split, shape, target)
    return SimtTiles(best, tuple(split), shape, target)


def simt_shape(block: Block, buffers: dict[str, Buffer], transposed: Collection[str]) -> SimtShape:
    """What the time of a GEMM depends on."""
    gemm = match_gemm(block)
    assert gemm is not None
    batch, m, n, k = map(size_of, (gemm.batch, gemm.m, gemm.n, gemm.k))
    left = copy_of(block, buffers, "a", VECTOR_ELEMENTS)
    right = copy_of(block, buffers, "b", VECTOR_ELEMENTS)
    left = MN_MAJOR if operand_load(gemm.a).buffer in transposed else left
    right = MN_MAJOR if operand_load(gemm.b).buffer in transposed else right
    sides = [as_int(it.extent) for it in gemm.k]
    known = [side for side in sides if side is not None]
    windows = None
    if len(sides) > 1 and len(known) == len(sides) and (left.window or right.window):
        windows = Windows(tuple(known[:-1]), known[-1])
    return SimtShape(batch, m, n, k, left, right, windows)


def _with_short_sums(
    best: SimtTile, tiles: list[SimtTile], shape: SimtShape, target: GpuTarget
) -> SimtTile:
    """The tile with K in more parts, where few rows or columns have long sums, and that is cheap.

    Errors grow with the root of how many terms are summed one after another.
    """
    few = min(shape.m, shape.n) < TIMES.min_side
    limit = (1 + SHORT_SUMS_SHARE) * shape.seconds(best, target)
    alike = [t for t in tiles if replace(t, split_k=best.split_k) == best]
    for t in sorted(alike, key=lambda t: t.split_k):
        long = few and shape.k // (best.split_k * best.chains) > SHORT_SUM
        if long and t.split_k > best.split_k and shape.seconds(t, target) <= limit:
            best = t
    return best


def _registers_of_words(tile: SimtTile) -> int:
    """The registers of a thread that copies word by word.

    Each word has an address of two registers, one in shared memory and a mask.
    """
    accumulators = tile.block_m * tile.block_n // tile.threads
    return accumulators + COPY_REGISTERS * tile.words + WORKING_REGISTERS


def has_im2col(gemm: GemmAxes) -> bool:
    """Whether an operand is an im2col matrix, or masked (zero padding)."""
    sides = ((gemm.a, gemm.m), (gemm.b, gemm.n))
    return any(
        is_im2col(operand, axes, gemm.k) or operand_load(operand).mask is not None
        for operand, axes in sides
    )


def prefers_rowwise(block: Block, found: SimtTiles, target: GpuTarget) -> bool:
    """Whether a reduction per element, each by a group of threads, is faster than a tile."""
    gemm, shape, k = match_gemm(block), found.shape, found.shape.k
    assert gemm is not None
    if min(shape.m, shape.n) >= TIMES.min_side or not has_im2col(gemm):
        return False
    sums = shape.batch * shape.m * shape.n
    waves = -(
        -sums * TIMES.sum_threads // (target.sm_count * target.warps_per_sm * target.warp_size)
    )
    reads = sums * k * 2 * operand_load(gemm.a).dtype.bytes
    rowwise = (
        waves * -(-k // TIMES.sum_threads) * TIMES.sum_step
        + sums * TIMES.sum_begin
        + reads / TIMES.sum_rate
    )
    return rowwise < found.seconds(found.default)


def _looping(tile: SimtTile, k: int) -> SimtTile:
    """A tile with a k-tile of which a GEMM has more than one.

    Of a single k-tile LLVM makes no loop: it reads all of both tiles before it multiplies.
    """
    return tile if k > tile.block_k else replace(tile, block_k=tile.block_k // 2)


def _with_split_k(tile: SimtTile, block: Block, target: GpuTarget) -> Iterator[SimtTile]:
    """A tile with every split-K factor that K allows."""
    gemm = match_gemm(block)
    assert gemm is not None
    few = min(size_of(gemm.m), size_of(gemm.n)) < TIMES.min_side
    most = MAX_TILES_PER_SM_OF_FEW_ROWS if few else MAX_TILES_PER_SM
    for factor in split_k_factors(block, tile.sides, MIN_SPLIT_K, target, most, MAX_SPLIT_K):
        yield replace(tile, split_k=factor)
