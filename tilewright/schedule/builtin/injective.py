"""Nests with no reduction: the innermost axis in vectors, the outermost in parallel."""

from __future__ import annotations

from tilewright.arith.expr import Select, as_int
from tilewright.arith.walk import free_vars, subexpressions
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.builtin.structure import (
    facts_of,
    flat_stride,
    loop_of,
    reads_of,
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
# Iterations of an axis that may be written out one by one.
MAX_CHOICES = 16
# Rows that a transposition handles together: the elements of one cache line.
TRANSPOSED_ROWS = 16
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
        _write_out_choices(sch, block, loops, extents, inner)
        _block_transposed(sch, block, loops, extents, inner)
    if work(block) >= PARALLEL_WORK:
        _parallelize(sch, loops, extents, target)


def _write_out_choices(
    sch: Schedule, block: Block, loops: list[str], extents: list[int], inner: str
) -> None:
    """Short axes that a formula is chosen by are written out innermost: each copy is one formula.

    Takes their loops off the lists, which stay those that are shared among threads.
    """
    deciding = {
        name
        for e in subexpressions(value_of(block))
        if isinstance(e, Select)
        for name in free_vars(e.cond)
    }
    chosen = [
        loop_of(it)
        for it in spatial(block)[:-1]
        if it.name in deciding and (as_int(it.extent) or MAX_CHOICES + 1) <= MAX_CHOICES
    ]
    if not chosen:
        return
    kept = [(loop, n) for loop, n in zip(loops, extents, strict=True) if loop not in chosen]
    loops[:], extents[:] = [loop for loop, _ in kept], [n for _, n in kept]
    sch.reorder(*loops, *chosen, inner)
    for loop in chosen:
        sch.unroll(loop)


def _block_transposed(
    sch: Schedule, block: Block, loops: list[str], extents: list[int], inner: str
) -> None:
    """Where an input is contiguous along another axis, walk both axes in blocks.

    A vector along the output's last axis then touches cache lines that the next rows use up.
    """
    facts = facts_of(sch.func)
    column = spatial(block)[-1].name
    for it in reversed(spatial(block)[:-1]):
        loop = loop_of(it)
        crossing = any(
            flat_stride(r, facts.buffers[r.buffer], it.name) == 1
            and flat_stride(r, facts.buffers[r.buffer], column) not in (0, 1)
            for r in reads_of(block)
        )
        if crossing and loop in loops and typical_extent(it.extent) > TRANSPOSED_ROWS:
            position = loops.index(loop)
            loops[position], rows = sch.split(loop, [None, TRANSPOSED_ROWS])
            extents[position] = -(-extents[position] // TRANSPOSED_ROWS)
            sch.reorder(*loops, rows, inner)
            return


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
