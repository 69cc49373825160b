"""Which tile a GEMM on tensor cores gets, by the measured time of a k-tile of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from math import inf

from tilewright.arith.expr import Call, Var, as_int
from tilewright.arith.operators import CHEAP_CALLS
from tilewright.arith.walk import subexpressions
from tilewright.core.dtypes import F32, DType
from tilewright.ir.loop.nodes import Block, Buffer
from tilewright.ir.loop.thread_mapping import WARP_SIZE
from tilewright.schedule.analysis.blocks import flat_stride, value_of
from tilewright.schedule.analysis.gemm import (
    GemmAxes,
    is_im2col,
    is_k_major,
    match_gemm,
    operand_load,
    size_of,
    transposed_gemm,
)
from tilewright.schedule.builtin.gpu.column_reduction import plan_columns
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import MIN_K
from tilewright.schedule.builtin.gpu.gemm.split_k import split_k_factor
from tilewright.schedule.choice_log import record_choice
from tilewright.schedule.intrin.nvidia import wgmma
from tilewright.schedule.intrin.nvidia.mma import MMA_K, MMA_M, MMA_N, VECTOR_ELEMENTS, mma_names
from tilewright.schedule.intrin.nvidia.mma_types import BYTE_KINDS, accumulator_type, kind_of
from tilewright.target.calibration.gpu import TensorCoreTileTime
from tilewright.target.calibration.sm_90a import MMA_RATE_PER_SM, TENSOR_CORE
from tilewright.target.gpu import GpuTarget

# Fewer columns than this leave most of a tile empty; so do fewer rows, which pay only where
# columns are contiguous: no other schedule then reads them in vectors.
MIN_SIDE = 4
# The K that is worth a second pass over the partial sums of split-K.
MIN_SPLIT_K = 256
# Elements of a tile's row of an MN-major operand: eight vectors of 16 bytes use all banks once.
MIN_MN_MAJOR = 64
# Times of the tiles and of what is around them, measured on an H200.
TIMES = TENSOR_CORE


class Mainloop(Enum):
    """Who copies operands to shared memory: all threads, one thread by TMA, or producer warps."""

    CP_ASYNC = "cp_async"
    TMA = "tma"
    WARP_SPECIALIZED = "warp_specialized"


class TileScheduler(Enum):
    """How tiles are distributed over thread blocks.

    One tile a block, or a part of its K (split-K); blocks that loop over tiles (persistent), or
    over equal numbers of k-tiles (stream-K).
    """

    DATA_PARALLEL = "data_parallel"
    SPLIT_K = "split_k"
    PERSISTENT = "persistent"
    STREAM_K = "stream_k"


@dataclass(frozen=True)
class TensorCoreTile:
    """A thread block's tile of the result, its warps, and the depth of its pipeline.

    An SM runs `blocks_per_sm` of them. Each takes `us_per_k_tile` microseconds for a k-tile, or
    `us_per_k_tile_im2col` where A is an im2col matrix, which threads copy vector by vector.
    `wgmma`: instructions of a warpgroup (four warps). `mainloop` is for full tiles that TMA can
    load; other tiles are copied by all threads, or have a `fallback` where producer warps load
    them. `split_k`: into how many parts K is split. `swap_ab`: the tile is of the transposed GEMM.
    Warps repeat along M `m_repeats` times. Two `consumer_groups` of warps take tiles in ping-pong.
    """

    block_m: int
    block_n: int
    warps_m: int
    warps_n: int
    stages: int
    blocks_per_sm: int
    us_per_k_tile: float
    us_per_k_tile_im2col: float = inf
    wgmma: bool = False
    block_k: int = 64
    operand_bytes: int = 2
    split_k: int = 1
    mainloop: Mainloop = Mainloop.TMA
    scheduler: TileScheduler = TileScheduler.DATA_PARALLEL
    swap_ab: bool = False
    m_repeats: int = 1
    consumer_groups: int = 1
    fallback: TensorCoreTile | None = None

    def of(self, operand_bytes: int) -> TensorCoreTile:
        """The tile for operands of so many bytes an element."""
        block_k = self.block_k * self.operand_bytes // operand_bytes
        return replace(self, block_k=block_k, operand_bytes=operand_bytes)

    @property
    def sides(self) -> tuple[int, int, int]:
        """The block's M, N and K."""
        return self.block_m, self.block_n, self.block_k

    @property
    def spelling(self) -> str:
        """`128 x 256 x 64, 4 stages, persistent`: what distinguishes it, for a report."""
        split = f", K in {self.split_k} parts" if self.split_k > 1 else ""
        return (
            f"{' x '.join(map(str, self.sides))}, {self.stages} stages, "
            f"{self.scheduler.value}{split}"
        )

    @property
    def threads(self) -> int:
        """The threads that compute it."""
        return WARP_SIZE * self.warps_m * self.warps_n

    @property
    def m_split(self) -> list[int]:
        """How often the warps repeat along M, if more than once, and the warps along M."""
        return [self.m_repeats, self.warps_m] if self.m_repeats > 1 else [self.warps_m]

    @property
    def warp(self) -> tuple[int, int]:
        """M and N of a warp's tile."""
        return self.block_m // (self.warps_m * self.m_repeats), self.block_n // self.warps_n

    @property
    def shared(self) -> int:
        """The bytes of shared memory of all stages."""
        return (self.block_m + self.block_n) * self.block_k * self.operand_bytes * self.stages

    @property
    def instruction_k(self) -> int:
        """K of one instruction."""
        if self.wgmma:
            return wgmma.wgmma_k(self.operand_bytes)
        return MMA_K * 2 // self.operand_bytes

    @property
    def vector_elements(self) -> int:
        """The elements of a vector of 16 bytes."""
        return VECTOR_ELEMENTS * 2 // self.operand_bytes

    def names(self, kind: str, left: bool, right: bool) -> tuple[str, str]:
        """The intrinsics that zero and accumulate; `left` and `right`: A and B are K-major."""
        if self.wgmma:
            return wgmma.wgmma_names(
                kind, self.block_n, "t" if right else "n", "n" if left else "t"
            )
        return mma_names(kind, *self.warp, ("n" if left else "t") + ("t" if right else "n"))


def _measured(
    rows: Sequence[TensorCoreTileTime],
    mainloop: Mainloop = Mainloop.TMA,
    scheduler: TileScheduler = TileScheduler.DATA_PARALLEL,
) -> tuple[TensorCoreTile, ...]:
    return tuple(
        TensorCoreTile(**asdict(row), mainloop=mainloop, scheduler=scheduler) for row in rows
    )


MULTISTAGE_TILES = _measured(TIMES.multistage)
# Persistent and stream-K kernels, both warp-specialized.
PERSISTENT_TILES = (
    *_measured(TIMES.persistent, Mainloop.WARP_SPECIALIZED, TileScheduler.PERSISTENT),
    *_measured(TIMES.stream_k, Mainloop.WARP_SPECIALIZED, TileScheduler.STREAM_K),
)


@dataclass(frozen=True)
class GemmShape:
    """The sizes of a GEMM, the calls of its epilogue, and whether A is an im2col matrix.

    `k_tile_factor` is how much longer a k-tile takes than on the GPU that was measured.
    """

    batch: int
    m: int
    n: int
    k: int
    epilogue_calls: int = 0
    im2col: bool = False
    k_tile_factor: float = 1.0

    def swapped(self) -> GemmShape:
        """The sizes of the transposed GEMM."""
        return replace(self, m=self.n, n=self.m)

    def tiles_and_k_tiles(self, tile: TensorCoreTile, sms: int) -> tuple[int, int]:
        """How many tiles an SM has, and the k-tiles of each."""
        tiles = -(-self._tiles(tile) * tile.split_k // sms)
        return tiles, -(-self.k // (tile.split_k * tile.block_k))

    def _tiles(self, tile: TensorCoreTile) -> int:
        return self.batch * -(-self.m // tile.block_m) * -(-self.n // tile.block_n)

    def us(self, tile: TensorCoreTile, sms: int) -> float:
        """Microseconds with a tile, without what all tiles have in common.

        In the last wave a block that has an SM to itself is faster, but not by as much.
        """
        if tile.mainloop is Mainloop.WARP_SPECIALIZED:
            return self._persistent_us(tile, sms)
        tiles, k_tiles = self.tiles_and_k_tiles(tile, sms)
        waves = (tiles - 1) // tile.blocks_per_sm
        last = max(tiles - waves * tile.blocks_per_sm, (tile.blocks_per_sm + 1) / 2)
        busy = (waves * tile.blocks_per_sm + last) * k_tiles * self._us_per_k_tile(tile)
        busy += waves * TIMES.us_per_wave + tiles * tile.block_m * tile.block_n * TIMES.us_per_store
        if tile.split_k == 1:
            elements = tile.block_m * tile.block_n / tile.threads
            busy += (waves + 1) * elements * self.epilogue_calls * TIMES.us_per_epilogue_call
        partial_bytes = tile.split_k * self.batch * self.m * self.n * 8
        added = TIMES.us_per_launch + partial_bytes / TIMES.split_k_bytes_per_us
        return busy + (added if tile.split_k > 1 else 0.0)

    def _us_per_k_tile(self, tile: TensorCoreTile) -> float:
        if self.im2col:
            us, full = tile.us_per_k_tile_im2col, self.n % tile.block_n == 0
            edge = TIMES.edge_factor
        else:
            us, full = tile.us_per_k_tile, self.m % tile.block_m == self.n % tile.block_n == 0
            edge = TIMES.edge_factor if tile.blocks_per_sm == 1 else TIMES.edge_factor_multi
        return self.k_tile_factor * us * (1.0 if full else edge)

    def _persistent_us(self, tile: TensorCoreTile, sms: int) -> float:
        """The same of a persistent kernel: with ping-pong, epilogues overlap other mainloops."""
        tiles, k_tiles = self.tiles_and_k_tiles(tile, sms)
        k_tile = self._us_per_k_tile(tile)
        pingpong = tile.consumer_groups > 1
        call = TIMES.us_per_pingpong_call if pingpong else TIMES.us_per_epilogue_call
        epilogue = tile.block_m * tile.block_n / tile.threads * self.epilogue_calls * call
        store = (
            tile.block_m
            * tile.block_n
            * TIMES.us_per_store
            * (TIMES.pingpong_stores if pingpong else 1.0)
        )
        stream_k = tile.scheduler is TileScheduler.STREAM_K
        if stream_k and tiles > TIMES.stream_k_max_tiles:
            return inf
        if stream_k:
            own = -(-self._tiles(tile) * k_tiles // sms)
            fixup = TIMES.us_per_fixup_element + TIMES.us_per_fixup_part * k_tiles / own
            partials = tile.block_m * tile.block_n * fixup
            return TIMES.us_persistent_start + own * k_tile + partials + tiles * (epilogue + store)
        mainloop = k_tiles * k_tile
        each = max(mainloop, (mainloop + epilogue) / tile.consumer_groups) + store
        return TIMES.us_persistent_start + (tiles - 1) * each + mainloop + epilogue + store


def tensor_core_tile_of(
    block: Block, buffers: dict[str, Buffer], target: GpuTarget, after: Sequence[Block] = ()
) -> TensorCoreTile | None:
    """The tile for a GEMM that the tensor cores have instructions for, else `None`.

    `after` are the blocks of the epilogue.
    """
    gemm = match_gemm(block, gemv=True)
    if gemm is None or block.writes[0].buffer not in buffers:
        return None
    dtype = operand_load(gemm.a).dtype
    if not _is_known(gemm, buffers[block.writes[0].buffer].dtype, target):
        return None
    batch, m, n, k = map(size_of, (gemm.batch, gemm.m, gemm.n, gemm.k))
    im2col = is_im2col(gemm.a, gemm.m, gemm.k)
    factor = MMA_RATE_PER_SM / target.mma_rate_per_sm
    shape = GemmShape(batch, m, n, k, sum(map(_epilogue_calls, after)), im2col, factor)
    few = shape.k < MIN_K or shape.n < MIN_SIDE
    if few or _is_thin(shape, block, buffers, target):
        return None
    k_major = (is_k_major(block, buffers, "a"), is_k_major(block, buffers, "b"))
    fitting = (_tf32_tiles if dtype == F32 else _exact_tiles)(gemm, k_major, target)
    if not fitting:
        return None
    shape = shape.swapped() if fitting[0].swap_ab else shape
    filled = [t for t in fitting if t.block_m < 2 * max(shape.m, MMA_M)]
    split = [c for t in filled or fitting for c in _with_split_k(t, block, target)]
    best = min(split, key=lambda t: shape.us(t, target.sm_count))
    tiles, k_tiles = shape.tiles_and_k_tiles(best, target.sm_count)
    pays = best.stages <= TIMES.tma_max_stages and tiles * k_tiles > TIMES.tma_min_k_tiles
    record_tile("tile", best, split, shape, target)
    best = replace(best, mainloop=Mainloop.TMA if dtype == F32 or pays else Mainloop.CP_ASYNC)
    if not best.wgmma or best.operand_bytes != PERSISTENT_TILES[0].operand_bytes:
        return best
    known = all(as_int(it.extent) is not None for it in block.iters)
    persistent = [
        t
        for t in PERSISTENT_TILES
        if (k_major[1] or t.block_n % MIN_MN_MAJOR == 0)
        and (known or t.scheduler is not TileScheduler.STREAM_K)
    ]
    taken = _prefer_persistent(best, persistent, shape, target)
    record_tile("persistent_tile", taken, [best, *persistent], shape, target)
    return taken


def record_tile(
    name: str,
    taken: TensorCoreTile,
    tiles: Sequence[TensorCoreTile],
    shape: GemmShape,
    target: GpuTarget,
) -> None:
    """Tell whoever asked which tile was taken, and how long the others would take."""

    def us(tile: TensorCoreTile) -> float:
        return shape.us(tile, target.sm_count)

    others = [t for t in tiles if t.spelling != taken.spelling]
    record_choice(name, taken, lambda: others, us, lambda t: t.spelling)


def _prefer_persistent(
    best: TensorCoreTile, tiles: Sequence[TensorCoreTile], shape: GemmShape, target: GpuTarget
) -> TensorCoreTile:
    """The fastest persistent tile, slower ones as its fallbacks; `best` if none is faster."""
    timed = [(shape.us(t, target.sm_count), n) for n, t in enumerate(tiles)]
    limit = shape.us(best, target.sm_count)
    for us, n in sorted(timed, reverse=True):
        if us < limit:
            best = replace(tiles[n], fallback=best)
    return best


def _epilogue_calls(block: Block) -> int:
    """How many calls of expensive functions there are in what a block computes."""
    called = (e.fn for e in subexpressions(value_of(block)) if isinstance(e, Call))
    return sum(fn not in CHEAP_CALLS for fn in called)


def _exact_tiles(
    gemm: GemmAxes, k_major: tuple[bool, ...], target: GpuTarget
) -> list[TensorCoreTile]:
    """The tiles for operands that are not rounded: of 16 bits, K-major or MN-major, or of 8 bits.

    Operands of 8 bits must be K-major.
    """
    dtype = operand_load(gemm.a).dtype
    if dtype.bytes == 1 and not all(k_major):
        return []
    has_wgmma = k_major[0] and any(
        s.operands == str(dtype) and s.m == 64 for s in target.mma_shapes
    )
    sized = [t.of(dtype.bytes) for t in MULTISTAGE_TILES]
    fitting = [t for t in sized if t.shared <= target.max_shared_per_block]
    readable = [
        t
        for t in fitting
        if (k_major[0] or t.block_m >= MIN_MN_MAJOR) and (k_major[1] or t.block_n >= MIN_MN_MAJOR)
    ]
    return [t for t in readable if has_wgmma or not t.wgmma]


def _tf32_tiles(
    gemm: GemmAxes, k_major: tuple[bool, ...], target: GpuTarget
) -> list[TensorCoreTile]:
    """The tiles for operands of f32 that are rounded to TF32.

    Both must be K-major; wgmma takes an M-major A from registers, and in the transposed GEMM an
    N-major B.
    """
    sized = [t.of(F32.bytes) for t in MULTISTAGE_TILES]
    fitting = [t for t in sized if t.shared <= target.max_shared_per_block]
    has_wgmma = any(s.operands == str(F32) and s.m == 64 for s in target.mma_shapes)
    swapped = k_major == (True, False)
    own = transposed_gemm(gemm) if swapped else gemm
    full = [t for t in fitting if t.wgmma and has_wgmma and _tiles_divide(own, t, all(k_major))]
    if all(k_major):
        return [t for t in fitting if t in full or not t.wgmma]
    return [replace(t, swap_ab=swapped) for t in full] if any(k_major) else []


def _is_known(gemm: GemmAxes, total: DType, target: GpuTarget) -> bool:
    """Whether there are instructions for the operand and accumulator types of a GEMM."""
    left, right = kinds = [str(operand_load(x).dtype) for x in (gemm.a, gemm.b)]
    known = {s.operands for s in target.mma_shapes if (s.m, s.n) == (MMA_M, MMA_N)}
    kind = kind_of(left, right)
    together = left == right or kind in BYTE_KINDS
    return together and {*kinds} <= known and str(total) == accumulator_type(kind)


def _tiles_divide(gemm: GemmAxes, tile: TensorCoreTile, k_major: bool) -> bool:
    """Whether all tiles of both operands are full tiles of matrices in memory.

    TMA copies those and rounds them to TF32; wgmma does not round. A is K-major or M-major. N may
    be the columns of several matrices that lie one behind the other.
    """
    if len(gemm.m) > 1 or len(gemm.n) > 2 or len(gemm.k) > 1:
        return False
    left = (*gemm.m, *gemm.k) if k_major else (*gemm.k, *gemm.m)
    sizes = {it.name: tile.block_k for it in gemm.k}
    sizes |= {it.name: tile.block_m for it in gemm.m}
    sizes |= {it.name: tile.block_n for it in gemm.n[-1:]}
    for operand, own in ((gemm.a, left), (gemm.b, (*gemm.n, *gemm.k))):
        load = operand_load(operand)
        if load.mask is not None or load.indices[-len(own) :] != tuple(Var(it.name) for it in own):
            return False
        if any((as_int(it.extent) or 1) % sizes.get(it.name, 1) for it in own):
            return False
    return True


def _is_thin(shape: GemmShape, block: Block, buffers: dict[str, Buffer], target: GpuTarget) -> bool:
    """Whether there are too few rows for a tile."""
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    if shape.m == 1 and plan_columns(block, buffers, target) is not None:
        return True
    right = operand_load(gemm.b)
    neighbours = bool(gemm.n) and 1 == flat_stride(right, buffers[right.buffer], gemm.n[-1].name)
    short = min(shape.n, shape.k) < MIN_MN_MAJOR
    return shape.m < MIN_SIDE and (not neighbours or short)


def _with_split_k(
    tile: TensorCoreTile, block: Block, target: GpuTarget
) -> Iterator[TensorCoreTile]:
    """A tile with every split-K factor that K allows."""
    m, n, k = tile.sides
    sides = (n, m, k) if tile.swap_ab else tile.sides
    factor = split_k_factor(block, sides, MIN_SPLIT_K, target)
    while factor:
        scheduler = TileScheduler.SPLIT_K if factor > 1 else TileScheduler.DATA_PARALLEL
        yield replace(tile, split_k=factor, scheduler=scheduler)
        factor //= 2
