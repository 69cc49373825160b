"""Row-wise kernels: softmax, norms, sums along the last axis.

All stages run row after row, each row staying in the nearest cache from the first stage to the last.
A reduction along a row keeps one partial result a vector lane, combined at the end of the row.

    parallel row
      peak.rf[lane] = max over the row in steps of a vector;  peak = max over lanes
      e[j] = exp(x[j] - peak)
      ...
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.schedule.builtin.injective import PARALLEL_WORK, UNROLL
from tilewright.schedule.builtin.structure import (
    Facts,
    facts_of,
    flat_stride,
    is_simple,
    loop_of,
    reads_of,
    reductions,
    spatial,
    static_extent,
    value_of,
    work,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import Target


def row_axes(facts: Facts) -> int | None:
    """How many leading axes number rows; `None` if the blocks do not share rows.

    Every reduction must produce one value a row, reading along its last reduction axis, and every
    other block must have the row axes in front.
    """
    sums = [b for b in facts.blocks if reductions(b)]
    if not sums or not all(is_simple(b) for b in facts.blocks):
        return None
    rows = [it.extent for it in spatial(sums[0])]
    for b in facts.blocks:
        extents = [it.extent for it in spatial(b)]
        if reductions(b) and extents != rows:
            return None
        if extents[: len(rows)] != rows:
            return None
    return len(rows) if all(_along_row(b, facts) for b in sums) else None


def _along_row(block: Block, facts: Facts) -> bool:
    axis = reductions(block)[-1].name
    strides = [flat_stride(r, facts.buffers[r.buffer], axis) for r in reads_of(block)]
    return any(s == 1 for s in strides)


def schedule_rows(sch: Schedule, facts: Facts, rows: int, target: Target) -> None:
    """Schedule all blocks row by row."""
    last = facts.blocks[-1]
    total = sum(work(b) for b in facts.blocks)
    loops = [loop_of(it) for it in spatial(last)[:rows]]
    if loops:
        row = sch.fuse(*loops) if rows > 1 else loops[0]
        for b in reversed(facts.blocks[:-1]):
            sch.compute_at(b.name, row)
        if total >= PARALLEL_WORK:
            sch.parallel(row)
    for b in facts.blocks:
        _vectorize(sch, b, rows, target)


def _vectorize(sch: Schedule, before: Block, rows: int, target: Target) -> None:
    """Lay the last axis of one block over vector lanes."""
    block = facts_of(sch.func).block(before.name)
    lanes = target.lanes(value_of(block).dtype.bits)
    axes = reductions(before) or spatial(before)[rows:]
    if not axes:
        return
    extent = static_extent(axes[-1].extent)
    if extent < lanes:
        return
    factor = lanes * min(UNROLL, max(1, extent // lanes))
    loop = _inner_loop(block, axes[-1].name)
    if not reductions(before):
        _, inner = sch.split(loop, [None, factor])
        sch.vectorize(inner)
        return
    _, inner = sch.split(loop, [None, factor])
    sch.rfactor(block.name, inner)
    sch.vectorize(inner)


def _inner_loop(block: Block, axis: str) -> str:
    """The loop that an axis runs over, inside the row loop."""
    it = next(i for i in block.iters if i.name == axis)
    return loop_of(it)
