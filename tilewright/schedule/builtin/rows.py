"""Row-wise kernels: softmax, norms, sums along the last axis.

All stages run row after row; a row stays in the nearest cache from the first stage to the last.
A reduction along a row keeps one partial result a vector lane, combined at the end of the row.

    parallel row
      peak.rf[lane] = max over the row in steps of a vector;  peak = max over lanes
      e[j] = exp(x[j] - peak)
      ...
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops_above
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
    typical_extent,
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
    lanes = target.lanes(value_of(before).dtype.bits)
    axes = reductions(before) or spatial(before)[rows:]
    if not axes:
        return
    extent = typical_extent(axes[-1].extent)
    wide = extent >= lanes
    factor = lanes * min(UNROLL, max(1, extent // lanes))
    if reductions(before):
        _reduce_in_lanes(sch, before.name, axes[-1].name, factor if wide else 0)
    elif wide:
        block = facts_of(sch.func).block(before.name)
        _, inner = sch.split(_loop_over(block, axes[-1].name), [None, factor])
        sch.vectorize(inner)


def _reduce_in_lanes(sch: Schedule, name: str, axis: str, factor: int) -> None:
    """One partial result a lane, then the lanes; what starts the sums stands before their loops."""
    if factor:
        block = facts_of(sch.func).block(name)
        _, inner = sch.split(_loop_over(block, axis), [None, factor])
        partial = sch.rfactor(name, inner)
        sch.vectorize(inner)
        _start_lanes(sch, partial)
    final = _reduction_loops(sch, name)
    sch.decompose_reduction(name, final[0])
    if factor:
        sch.unroll(final[0])


def _start_lanes(sch: Schedule, partial: str) -> None:
    """Start all lanes at once; a guarded reduction has a block for that already."""
    facts = facts_of(sch.func)
    if facts.block(partial).init is not None:
        sch.decompose_reduction(partial, _reduction_loops(sch, partial)[0])
    elif f"{partial}.init" in {b.name for b in facts.blocks}:
        sch.vectorize(loops_above(sch.func, f"{partial}.init")[-1].name)


def _reduction_loops(sch: Schedule, block: str) -> list[str]:
    """The loops that a block reduces over, outermost first."""
    found = facts_of(sch.func).block(block)
    reduced = {loop_of(it) for it in reductions(found)}
    return [loop.name for loop in loops_above(sch.func, found) if loop.name in reduced]


def _loop_over(block: Block, axis: str) -> str:
    """The loop that an axis runs over, inside the row loop."""
    return loop_of(next(it for it in block.iters if it.name == axis))
