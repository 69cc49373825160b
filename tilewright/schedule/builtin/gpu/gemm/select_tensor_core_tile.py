"""Which tile a GEMM on tensor cores gets: of those that fit its operands, the fastest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.arith.expr import Call, Expr, Var, as_int
from tilewright.arith.operators import CHEAP_CALLS
from tilewright.arith.walk import subexpressions
from tilewright.core.dtypes import F32, DType
from tilewright.ir.loop.nodes import Block, Buffer
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
from tilewright.schedule.builtin.gpu.gemm.split_k import split_k_factors
from tilewright.schedule.builtin.gpu.gemm.tensor_core_cost import TIMES, GemmShape
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    MULTISTAGE_TILES,
    PERSISTENT_TILES,
    Mainloop,
    TensorCoreTile,
    TileScheduler,
)
from tilewright.schedule.intrin.nvidia.mma import MMA_M
from tilewright.schedule.intrin.nvidia.mma_types import BYTE_KINDS, accumulator_type, kind_of
from tilewright.schedule.intrin.nvidia.wgmma import K_MAJOR_ONLY_N
from tilewright.target.calibration.sm_90a import MMA_RATE_PER_SM
from tilewright.target.gpu import SECTOR_BYTES, GpuTarget

# Fewer columns than this leave most of a tile empty; so do fewer rows, which pay only where
# columns are contiguous: no other schedule then reads them in vectors.
MIN_SIDE = 4
# The K that is worth a second pass over the partial sums of split-K.
MIN_SPLIT_K = 256
# Elements of a tile's row of an MN-major operand: eight vectors of 16 bytes use all banks once.
MIN_MN_MAJOR = 64


@dataclass(frozen=True)
class TensorCoreTiles:
    """The tiles of a GEMM that fit its operands, and which of them is taken by default.

    That one may be a persistent tile with slower ones as its fallbacks.
    """

    default: TensorCoreTile
    tiles: tuple[TensorCoreTile, ...]
    shape: GemmShape
    target: GpuTarget

    def us(self, tile: TensorCoreTile) -> float:
        """The estimated microseconds with a tile."""
        return self.shape.us(tile, self.target.sm_count)


def tensor_core_tile_of(
    block: Block, buffers: dict[str, Buffer], target: GpuTarget, after: Sequence[Block] = ()
) -> TensorCoreTile | None:
    """The default tile for a GEMM that the tensor cores have instructions for, else `None`."""
    found = tensor_core_tiles_of(block, buffers, target, after)
    return None if found is None else found.default


def tensor_core_tiles_of(
    block: Block, buffers: dict[str, Buffer], target: GpuTarget, after: Sequence[Block] = ()
) -> TensorCoreTiles | None:
    """The tiles for a GEMM that the tensor cores have instructions for, else `None`.

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
    across = _is_across(gemm.a, gemm, buffers), _is_across(gemm.b, gemm, buffers)
    shape = GemmShape(batch, m, n, k, sum(map(_epilogue_calls, after)), im2col, factor, across)
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
    split = [replace(t, mainloop=_mainloop(t, dtype, shape, target)) for t in split]
    best = min(split, key=lambda t: shape.us(t, target.sm_count))
    roles = all(map(target.has, ("tma", "mbarrier", "setmaxnreg")))
    if not (best.wgmma and roles) or best.operand_bytes != PERSISTENT_TILES[0].operand_bytes:
        return TensorCoreTiles(best, tuple(split), shape, target)
    known = all(as_int(it.extent) is not None for it in block.iters)
    persistent = [
        t
        for t in PERSISTENT_TILES
        if (k_major[1] or t.block_n % MIN_MN_MAJOR == 0)
        and (known or t.scheduler is not TileScheduler.STREAM_K)
    ]
    taken = _prefer_persistent(best, persistent, shape, target)
    return TensorCoreTiles(taken, (*split, *persistent), shape, target)


def _mainloop(tile: TensorCoreTile, dtype: DType, shape: GemmShape, target: GpuTarget) -> Mainloop:
    """How a tile that is not persistent is copied; TMA also rounds operands to TF32.

    Threads compare each vector of a tile that reaches beyond its matrix with the bounds.
    """
    tiles, k_tiles = shape.tiles_and_k_tiles(tile, target.sm_count)
    pays = tile.stages <= TIMES.tma_max_stages and tiles * k_tiles > TIMES.tma_min_k_tiles
    sizes = zip((shape.m, shape.n, shape.k), tile.sides, strict=True)
    beyond = any(size % side for size, side in sizes)
    return Mainloop.TMA if dtype == F32 or pays or beyond else Mainloop.CP_ASYNC


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


def _is_across(operand: Expr, gemm: GemmAxes, buffers: dict[str, Buffer]) -> bool:
    """Whether rows of an operand, or pixels of a window, begin within sectors of the L2."""
    load = operand_load(operand)
    axes = (*gemm.batch, *gemm.m, *gemm.n, *gemm.k)
    strides = (flat_stride(load, buffers[load.buffer], it.name) for it in axes)
    apart = (s for s in strides if s is not None and s > 1)
    return any(s * load.dtype.bytes % SECTOR_BYTES for s in apart)


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
    readable = [
        t
        for t in _fitting(dtype, target)
        if (k_major[0] or t.block_m >= MIN_MN_MAJOR)
        and (k_major[1] or t.block_n % MIN_MN_MAJOR == 0)
    ]
    return [t for t in readable if k_major[0] or not t.wgmma]


def _fitting(dtype: DType, target: GpuTarget) -> list[TensorCoreTile]:
    """The tiles that a machine has instructions and shared memory for."""
    narrow = {t for t in MULTISTAGE_TILES if t.wgmma and t.block_n in K_MAJOR_ONLY_N}
    known = (t for t in MULTISTAGE_TILES if dtype.bytes == 2 or t not in narrow)
    sized = (t.of(dtype.bytes).on(target, str(dtype)) for t in known)
    return [t for t in sized if t is not None]


def _tf32_tiles(
    gemm: GemmAxes, k_major: tuple[bool, ...], target: GpuTarget
) -> list[TensorCoreTile]:
    """The tiles for operands of f32 that are rounded to TF32.

    Both must be K-major; wgmma takes an M-major A from registers, and in the transposed GEMM an
    N-major B.
    """
    fitting = _fitting(F32, target)
    swapped = k_major == (True, False)
    own = transposed_gemm(gemm) if swapped else gemm
    full = [t for t in fitting if t.wgmma and _tiles_divide(own, t, all(k_major))]
    if all(k_major):
        return [t for t in fitting if t in full or not t.wgmma]
    return [replace(t, swap_ab=swapped) for t in full] if any(k_major) else []


def _is_known(gemm: GemmAxes, total: DType, target: GpuTarget) -> bool:
    """Whether there are instructions for the operand and accumulator types of a GEMM."""
    left, right = kinds = [str(operand_load(x).dtype) for x in (gemm.a, gemm.b)]
    known = all(target.warp_mma(kind) is not None for kind in kinds)
    kind = kind_of(left, right)
    together = left == right or kind in BYTE_KINDS
    return together and known and str(total) == accumulator_type(kind)


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
    for factor in split_k_factors(block, sides, MIN_SPLIT_K, target):
        scheduler = TileScheduler.SPLIT_K if factor > 1 else TileScheduler.DATA_PARALLEL
        yield replace(tile, split_k=factor, scheduler=scheduler)
