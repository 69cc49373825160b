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


def schedule_split_k(
    sch: Schedule,
    name: str,
    factor: int,
    tiles: Callable[[str, str], None],
    target: GpuTarget,
) -> None:
    """Let `tiles` schedule a GEMM and its epilogue; with split-K, a part and its copy to memory."""
    if factor == 1:
        tiles(name, block_graph(sch.func).blocks[-1].name)
        return
    block = block_graph(sch.func).block(name)
    number, _ = sch.split(loop_of(longest_axis(tuple(reductions(block)))), [factor, None])
    part = sch.rfactor(name, number)
    tiles(part, sch.cache_write(part, "global"))
    schedule_sum(sch, name, target, parts=True)


def split_k_factor(
    block: Block,
    sides: tuple[int, int, int],
    min_k: int,
    target: GpuTarget,
    tiles_per_sm: int = 1,
    rounding: float = 1.0,
) -> int:
    """The split-K factor, a power of two, that gives every SM a tile.

    `sides` are M, N and K of a tile. No part of K is shorter than `min_k`, no vector spans two
    parts, and there are at most `tiles_per_sm` tiles for each SM. Parts that are no multiple of a
    tile's K are rounded up, all together to at most `rounding` times K.
    """
    tile_m, tile_n, tile_k = sides
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    batch, m, n, k = map(size_of, (gemm.batch, gemm.m, gemm.n, gemm.k))
    tiles = batch * -(-m // tile_m) * -(-n // tile_n)
    longest = as_int(longest_axis(gemm.k).extent)
    aligned = VECTOR_BYTES // operand_load(gemm.a).dtype.bytes
    factor = 1
    while (
        longest is not None
        and 2 * factor * tiles <= tiles_per_sm * target.sm_count
        and longest % (2 * factor * aligned) == 0
        and -(-k // (2 * factor * tile_k)) * 2 * factor * tile_k <= rounding * k
        and k // (2 * factor) >= min_k
    ):
        factor *= 2
    return factor


def longest_axis(axes: tuple[Iter, ...]) -> Iter:
    """The axis of K that is split: the channels of a convolution."""
    return max(axes, key=lambda it: typical_extent(it.extent))
