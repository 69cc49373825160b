"""Which tile a GEMM on CUDA cores (SIMT) gets, and which split-K factor, by measured times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.gemm import (
    GemmAxes,
    is_im2col,
    match_gemm,
    operand_load,
    size_of,
)
from tilewright.schedule.builtin.gpu.gemm.split_k import split_k_factors
from tilewright.target.calibration.sm_90a import SIMT
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# Contiguous rows and columns of a thread: a vector of f32.
VECTOR_ELEMENTS = VECTOR_BYTES // F32.bytes
# The threads of a warp along M and N: they read few different words of both operands.
LANES = (4, 8)
# A smaller K is not worth a tile.
MIN_K = 8
# A smaller M or N leaves most of a tile empty.
MIN_SIDE = 4
# The K that is worth a pass over partial sums, for how many tiles per SM, and the largest factor.
MIN_SPLIT_K, MAX_TILES_PER_SM, MAX_SPLIT_K = 32, 9, 16
# The tiles for each SM where few rows or columns make the partial sums small.
MAX_TILES_PER_SM_OF_FEW_ROWS = 36
# The terms that are summed one after another where few rows or columns are bound by the bytes of
# their operands, and the time that shorter sums may take besides, as a part of the product's.
SHORT_SUM, SHORT_SUMS_SHARE = 512, 0.05
# The partial sums of each element, where a thread has at most so many elements.
CHAINS, MAX_CHAINED = 2, 16
# Pipeline stages.
STAGES = 4
# Registers of a thread for each word that it copies by itself, and besides accumulators and those.
COPY_REGISTERS, WORKING_REGISTERS = 4, 40
# Rates of the tiles and times of what is around them, measured on an H200.
TIMES = SIMT


@dataclass(frozen=True)
class SimtTile:
    """A thread block's tile of the result, its k-tile, and its threads along M and N.

    An SM runs `blocks_per_sm` of them. `relative_rate` is the rate compared with the best tile;
    `split_k` is into how many parts K is split; `stages` are those of the pipeline.
    """

    block_m: int
    block_n: int
    block_k: int
    threads_m: int
    threads_n: int
    blocks_per_sm: int
    relative_rate: float
    split_k: int = 1
    stages: int = STAGES

    @property
    def chains(self) -> int:
        """The partial sums of each element: chains of additions half as long have smaller errors.

        Only where there are registers for them.
        """
        return CHAINS if self.block_m * self.block_n <= MAX_CHAINED * self.threads else 1

    @property
    def shared(self) -> int:
        """The bytes of shared memory of all stages, of f32 at most."""
        return (self.block_m + self.block_n) * self.block_k * F32.bytes * self.stages

    @property
    def words(self) -> int:
        """The words of a k-tile that a thread copies."""
        return (self.block_m + self.block_n) * self.block_k // self.threads

    def on(self, target: GpuTarget) -> SimtTile | None:
        """The tile as a machine can have it, `None` if its shared memory is too small.

        Fewer stages where copies pass through registers, fewer blocks on an SM of less memory.
        """
        most = target.max_pipeline_stages
        fewer = self if most is None else replace(self, stages=min(self.stages, most))
        if fewer.shared > target.max_shared_per_block:
            return None
        blocks = min(fewer.blocks_per_sm, target.resident_blocks(fewer.shared, fewer.threads))
        return replace(fewer, blocks_per_sm=blocks)

    def resident(self, target: GpuTarget, depth: int) -> int:
        """How many blocks the registers of an SM suffice for, of threads that read so much of K."""
        accumulators = self.block_m * self.block_n // self.threads
        read = (self.block_m // self.threads_m + self.block_n // self.threads_n) * depth
        registers = accumulators * self.chains + read + WORKING_REGISTERS
        return max(1, target.registers_per_sm // (registers * self.threads))

    @property
    def sides(self) -> tuple[int, int, int]:
        """The block's M, N and K."""
        return self.block_m, self.block_n, self.block_k

    @property
    def spelling(self) -> str:
        """`128 x 64 x 16, 16 x 8 threads`: what distinguishes it."""
        split = f", K in {self.split_k} parts" if self.split_k > 1 else ""
        sides = " x ".join(map(str, self.sides))
        return f"{sides}, {self.threads_m} x {self.threads_n} threads{split}"

    @property
    def threads(self) -> int:
        """The threads that compute it."""
        return self.threads_m * self.threads_n

    def m_split(self, vector: int) -> list[int]:
        """Factors of M: repeats of a thread, warps, lanes of a warp, rows of a vector."""
        lanes = LANES[0]
        return [self.block_m // (self.threads_m * vector), self.threads_m // lanes, lanes, vector]

    def n_split(self, vector: int) -> list[int]:
        """The same factors of N."""
        lanes = LANES[1]
        return [self.block_n // (self.threads_n * vector), self.threads_n // lanes, lanes, vector]


SIMT_TILES = tuple(SimtTile(**asdict(row)) for row in TIMES.tiles)


@dataclass(frozen=True)
class SimtTiles:
    """The tiles of a GEMM, and which of them is taken by default."""

    default: SimtTile
    tiles: tuple[SimtTile, ...]
    sizes: tuple[int, ...]
    target: GpuTarget

    def seconds(self, tile: SimtTile) -> float:
        """The estimated time with a tile."""
        return _seconds(tile, self.sizes, self.target)


def simt_tile_of(block: Block, target: GpuTarget) -> SimtTile | None:
    """The default tile for a GEMM, `None` if a block is none or is better off without."""
    found = simt_tiles_of(block, target)
    return None if found is None else found.default


def simt_tiles_of(block: Block, target: GpuTarget) -> SimtTiles | None:
    """The tiles for a GEMM, `None` if a block is none or is better off without."""
    gemm = match_gemm(block)
    if gemm is None:
        return None
    sizes = tuple(map(size_of, (gemm.batch, gemm.m, gemm.n, gemm.k)))
    _, m, n, k = sizes
    if k < MIN_K or min(m, n) < MIN_SIDE:
        return None
    fitting = [t for tile in SIMT_TILES if (t := tile.on(target)) is not None]
    if has_im2col(gemm) and not target.has("cp.async"):
        # What is copied word by word waits in registers.
        limit = target.registers_per_thread
        fitting = [t for t in fitting if _registers_of_words(t) + t.words <= limit]
    split = [c for t in fitting for c in _with_split_k(_looping(t, k), block, target)]
    best = min(split, key=lambda t: _seconds(t, sizes, target))
    if has_im2col(gemm) and _tiles_per_sm(best, sizes, target) <= 1:
        alike = [t for t in split if replace(t, split_k=best.split_k) == best]
        single = [t for t in alike if _tiles_per_sm(t, sizes, target) == 1]
        best = min(single, key=lambda t: _im2col_seconds(t, sizes, target))
    best = _with_short_sums(best, split, sizes, target)
    return SimtTiles(best, tuple(split), sizes, target)


def _with_short_sums(
    best: SimtTile, tiles: list[SimtTile], sizes: tuple[int, ...], target: GpuTarget
) -> SimtTile:
    """The tile with K in more parts, where few rows or columns have long sums, and that is cheap.

    Errors grow with the root of how many terms are summed one after another.
    """
    _, m, n, k = sizes
    limit = (1 + SHORT_SUMS_SHARE) * _seconds(best, sizes, target)
    alike = [t for t in tiles if replace(t, split_k=best.split_k) == best]
    for t in sorted(alike, key=lambda t: t.split_k):
        long = k // (best.split_k * best.chains) > SHORT_SUM and min(m, n) < TIMES.min_side
        if long and t.split_k > best.split_k and _seconds(t, sizes, target) <= limit:
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


def prefers_rowwise(block: Block, tile: SimtTile, target: GpuTarget) -> bool:
    """Whether a reduction per element, each by a group of threads, is faster than a tile."""
    gemm = match_gemm(block)
    assert gemm is not None
    batch, m, n, k = sizes = tuple(map(size_of, (gemm.batch, gemm.m, gemm.n, gemm.k)))
    if min(m, n) >= TIMES.min_side or not has_im2col(gemm):
        return False
    sums = batch * m * n
    waves = -(
        -sums * TIMES.sum_threads // (target.sm_count * target.warps_per_sm * target.warp_size)
    )
    reads = sums * k * 2 * operand_load(gemm.a).dtype.bytes
    rowwise = (
        waves * -(-k // TIMES.sum_threads) * TIMES.sum_step
        + sums * TIMES.sum_begin
        + reads / TIMES.sum_rate
    )
    return rowwise < _im2col_seconds(tile, sizes, target)


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
    factors = split_k_factors(block, tile.sides, MIN_SPLIT_K, target, most, has_im2col(gemm))
    for factor in factors:
        if factor <= MAX_SPLIT_K:
            yield replace(tile, split_k=factor)


def _tiles_per_sm(tile: SimtTile, sizes: tuple[int, ...], target: GpuTarget) -> int:
    batch, m, n, _ = sizes
    blocks = tile.split_k * batch * -(-m // tile.block_m) * -(-n // tile.block_n)
    return -(-blocks // target.sm_count)


def _seconds(tile: SimtTile, sizes: tuple[int, ...], target: GpuTarget) -> float:
    """How long a GEMM takes with a tile."""
    batch, m, n, k = sizes
    tiles_per_sm = _tiles_per_sm(tile, sizes, target)
    warps = tile.threads // target.warp_size
    # Each scheduler has whole warps, and waits for the one that has most.
    tiles = -(-tiles_per_sm * warps // TIMES.schedulers) * TIMES.schedulers / warps
    resident = max(1, tile.blocks_per_sm - 1)  # as most GEMMs have a K-major A
    few = min(tiles_per_sm, resident) * warps <= TIMES.few_warps
    rate = TIMES.peak_share * tile.relative_rate * (TIMES.few_warps_factor if few else 1.0)
    work = tiles * tile.block_m * tile.block_n * k / tile.split_k * target.sm_count
    added = TIMES.launch + tile.split_k * batch * m * n * 8 / TIMES.split_k_rate
    waves = -(-tiles_per_sm // resident)
    busy = work / (rate * target.f32_rate / 2) + waves * TIMES.wave
    return busy + (added if tile.split_k > 1 else 0.0)


def _im2col_seconds(tile: SimtTile, sizes: tuple[int, ...], target: GpuTarget) -> float:
    """The same of an im2col operand, with at most one tile for each SM."""
    k_tiles = -(-sizes[-1] // (tile.split_k * tile.block_k))
    launch = TIMES.launch if tile.split_k > 1 else 0.0
    copies = k_tiles * TIMES.im2col_k_tile + TIMES.wave + launch
    return max(copies, _seconds(tile, sizes, target))
