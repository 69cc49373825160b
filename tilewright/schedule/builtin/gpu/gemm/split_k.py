"""Split-K: K of a GEMM is split among thread blocks; a second launch adds up the partial sums.

for part in parts of K:  partial[part] = A[:, part] * B[part, :]      tiles of either GEMM
result = epilogue(sum(partial))                                       a second launch
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import block_graph, loop_of, typical_extent
from tilewright.schedule.analysis.gemm import match_gemm, operand_load, size_of
from tilewright.schedule.builtin.gpu.thread_per_element import schedule_sum
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# How much longer K may become by rounding its parts up to whole k-tiles.
MAX_ROUNDING = 1.25
# The counts of parts up to which each is tried, beyond only multiples of eight.
DENSE = 16


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
    axis, unit = split_axis(block_graph(sch.func).block(name), factor, tile_k)
    if unit > 1:
        sch.pad_reduction(name, axis.name, unit)
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
    largest: int | None = None,
) -> list[int]:
    """The split-K factors that give SMs work: powers of two, or nearly any up to the `largest`.

    `sides` are M, N and K of a tile. No part of K is shorter than `min_k`, and there are at most
    `tiles_per_sm` tiles for each SM. Parts that are no multiple of a tile's K are rounded up, all
    together to at most `MAX_ROUNDING` times K.
    """
    tile_m, tile_n, tile_k = sides
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    batch, m, n, k = map(size_of, (gemm.batch, gemm.m, gemm.n, gemm.k))
    tiles = batch * -(-m // tile_m) * -(-n // tile_n)
    most = min(tiles_per_sm * target.sm_count // tiles, k // min_k)
    if most < 2 or as_int(longest_axis(gemm.k).extent) is None:
        return [1]
    powers = (1 << i for i in range(1, most.bit_length()))
    nearly_all = (c for c in range(2, min(most, largest or 0) + 1) if c <= DENSE or c % 8 == 0)
    counts = powers if largest is None else nearly_all
    return [1, *(c for c in counts if _worth(block, c, k, tile_k))]


def _worth(block: Block, factor: int, k: int, tile_k: int) -> bool:
    """Whether no part is empty, and K is rounded up by little."""
    axis, unit = split_axis(block, factor, tile_k)
    extent = typical_extent(axis.extent)
    rounded = -(-extent // unit) * unit
    part = -(-(k // extent * rounded) // (factor * tile_k)) * tile_k
    return rounded // factor * (factor - 1) < extent and part * factor <= MAX_ROUNDING * k


def split_axis(block: Block, factor: int, tile_k: int) -> tuple[Iter, int]:
    """The axis of K that is cut into so many parts, and what its extent is rounded up to.

    It is the longest, the channels of a convolution, unless it had to be rounded up and a side of
    the window need not be.
    """
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    axis = longest_axis(gemm.k)
    extent = as_int(axis.extent)
    assert extent is not None
    if extent % (factor * _vector(block)) == 0:
        return axis, 1
    for side in gemm.k[:-1]:
        places = as_int(side.extent)
        if places is not None and places % factor == 0:
            return side, 1
    return axis, factor * (tile_k if len(gemm.k) == 1 else _vector(block))


def _vector(block: Block) -> int:
    """The elements of a vector."""
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    return VECTOR_BYTES // operand_load(gemm.a).dtype.bytes


def longest_axis(axes: tuple[Iter, ...]) -> Iter:
    """The axis of K that is split: the channels of a convolution."""
    return max(reversed(axes), key=lambda it: typical_extent(it.extent))
