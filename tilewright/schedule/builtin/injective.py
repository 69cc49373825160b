"""Nests with no reduction: the innermost axis in vectors, the outermost in parallel."""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.schedule.builtin.structure import (
    loop_of,
    spatial,
    typical_extent,
    value_of,
    work,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import Target

# Fewer steps than this are not worth waking another thread for.
PARALLEL_WORK = 32_768
# Iterations of the parallel loop for each core: evens out what threads get.
CHUNKS_PER_CORE = 16
# Vectors in one iteration: independent chains hide the latency of long formulas.
UNROLL = 4


def schedule_injective(sch: Schedule, block: Block, target: Target) -> None:
    """Schedule one nest whose loops all number output elements."""
    axes = spatial(block)
    if not axes:
        return
    loops = [loop_of(it) for it in axes]
    extents = [typical_extent(it.extent) for it in axes]
    lanes = target.lanes(value_of(block).dtype.bits)
    if extents[-1] >= lanes:
        factor = lanes * min(UNROLL, extents[-1] // lanes)
        loops[-1], inner = sch.split(loops[-1], [None, factor])
        sch.vectorize(inner)
        extents[-1] = -(-extents[-1] // factor)
    if work(block) >= PARALLEL_WORK:
        _parallelize(sch, loops, extents, target)


def _parallelize(sch: Schedule, loops: list[str], extents: list[int], target: Target) -> None:
    """Share the outermost loops among threads; as few of them as give every thread enough.

    A loop that is fused costs a division in each iteration, so the innermost ones stay apart.
    """
    enough = target.cores * CHUNKS_PER_CORE
    count, taken = 1, 0
    while taken < len(loops) and count < enough:
        count *= extents[taken]
        taken += 1
    sch.parallel(sch.fuse(*loops[:taken]) if taken > 1 else loops[0])
