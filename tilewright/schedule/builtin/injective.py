"""Nests with no reduction: the innermost axis in vectors, the outermost in parallel."""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.schedule.builtin.structure import (
    Facts,
    flat_stride,
    loop_of,
    reads_of,
    spatial,
    static_extent,
    value_of,
    work,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import Target

# Fewer steps than this are not worth waking another thread for.
PARALLEL_WORK = 32_768
# Vectors in one iteration: independent chains hide the latency of long formulas.
UNROLL = 4


def schedule_injective(sch: Schedule, block: Block, facts: Facts, target: Target) -> None:
    """Schedule one nest whose loops all number output elements."""
    axes = spatial(block)
    if not axes:
        return
    loops = [loop_of(it) for it in axes]
    extents = [static_extent(it.extent) for it in axes]
    lanes = target.lanes(value_of(block).dtype.bits)
    if _contiguous(block, facts) and extents[-1] >= lanes:
        factor = lanes * min(UNROLL, extents[-1] // lanes)
        outer, inner = sch.split(loops[-1], [None, factor])
        sch.vectorize(inner)
        loops[-1] = outer
    if work(block) >= PARALLEL_WORK:
        sch.parallel(sch.fuse(*loops) if len(loops) > 1 else loops[0])


def _contiguous(block: Block, facts: Facts) -> bool:
    """Whether the innermost axis walks at least the output and one input element by element."""
    axis = spatial(block)[-1].name
    strides = [flat_stride(r, facts.buffers[r.buffer], axis) for r in reads_of(block)]
    return not strides or any(s in (0, 1) for s in strides)
