"""Split-K: K of a GEMM is split among thread blocks; a second launch adds up the partial sums.

for part in parts of K:  partial[part] = A[:, part] * B[part, :]      tiles of either GEMM
result = epilogue(sum(partial))                                       a second launch
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import block_graph, loop_of, reductions, typical_extent
from tilewright.schedule.analysis.gemm import match_gemm, operand_load, size_of
from tilewright.schedule.builtin.gpu.thread_per_element import schedule_sum
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# How much longer K may become by rounding its parts up to whole k-tiles.
MAX_ROUNDING = 1.25


def schedule_split_k(
    sch: Schedule,
    name: str,
    factor: int,
    tile_k: int,
    tiles: Callable[[str, str], None],
    target: GpuTarget,
) -> None:
    """Let `tiles` schedule a GEMM and its epilogue; with split-K, a part and its copy to memory.

    K is rounded up to parts of equal length: of whole k-tiles, or vectors of channels.
    """
    if factor == 1:
        tiles(name, block_graph(sch.func).blocks[-1].name)
        return
    block = block_graph(sch.func).block(name)
    axis = longest_axis(tuple(reductions(block)))
    if padded_axis(block, factor, tile_k) is not None:
        sch.pad_reduction(name, axis.name, factor * _unit(block, tile_k))
    number, _ = sch.split(loop_of(axis), [factor, None])
    part = sch.rfactor(name, number)
    tiles(part, sch.cache_write(part, "global"))
    schedule_sum(sch, name, target, parts=True)


def split_k_factors(
    block: Block,
    sides: tuple[int, int, int],
    min_k: int,
    target: GpuTarget,
    tiles_per_sm: int = 1,
) -> list[int]:
    """The split-K factors, powers of two from one on, that give SMs work.

    `sides` are M, N and K of a tile. No part of K is shorter than `min_k`, and there are at most
    `tiles_per_sm` tiles for each SM. Parts that are no multiple of a tile's K are rounded up, all
    together to at most `MAX_ROUNDING` times K.
    """
    tile_m, tile_n, tile_k = sides
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    batch, m, n, k = map(size_of, (gemm.batch, gemm.m, gemm.n, gemm.k))
    tiles = batch * -(-m // tile_m) * -(-n // tile_n)
    longest = as_int(longest_axis(gemm.k).extent)
    factors, factor = [1], 2
    while longest and factor * tiles <= tiles_per_sm * target.sm_count and k // factor >= min_k:
        rounded = padded_axis(block, factor, tile_k) or longest
        part = -(-(k // longest * rounded) // (factor * tile_k)) * tile_k
        if rounded // factor * (factor - 1) < longest and part * factor <= MAX_ROUNDING * k:
            factors.append(factor)
        factor *= 2
    return factors


def padded_axis(block: Block, factor: int, tile_k: int) -> int | None:
    """The extent that the axis that is split is rounded up to, `None` where it need not be."""
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    longest = as_int(longest_axis(gemm.k).extent)
    assert longest is not None
    if longest % (factor * _vector(block)) == 0:
        return None
    unit = factor * _unit(block, tile_k)
    return -(-longest // unit) * unit


def _unit(block: Block, tile_k: int) -> int:
    """What the parts of the axis are a multiple of: no k-tile, or no vector, spans two parts."""
    return tile_k if len(reductions(block)) == 1 else _vector(block)


def _vector(block: Block) -> int:
    """The elements of a vector."""
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    return VECTOR_BYTES // operand_load(gemm.a).dtype.bytes


def longest_axis(axes: tuple[Iter, ...]) -> Iter:
    """The axis of K that is split: the channels of a convolution."""
    return max(axes, key=lambda it: typical_extent(it.extent))
