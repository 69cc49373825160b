"""Row-wise kernels: softmax, norms, sums along the last axis.

All stages run row after row; a row stays in the nearest cache from the first stage to the last.
A reduction along a row keeps one partial result a vector lane, combined at the end of the row.

    parallel row
      peak.rf[lane] = max over the row in steps of a vector;  peak = max over lanes
      e[j] = exp(x[j] - peak)
      ...
"""

from __future__ import annotations

from collections.abc import Set

from tilewright.arith.expr import Var
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
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
from tilewright.schedule.builtin.cpu.injective import UNROLL, vectors_together
from tilewright.schedule.builtin.cpu.parallelize import is_shared
from tilewright.schedule.builtin.cpu.simd_reduction import reduce_in_lanes
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget


def row_axes(facts: Facts) -> int | None:
    """How many leading axes number rows; `None` if the blocks do not share rows.

    Every reduction must produce one value a row, reading along its last reduction axis, and every
    other block must have the row axes in front and read what other blocks give for its own row:
    other axes may happen to be as long.
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
    made = {r.buffer for b in facts.blocks for r in b.writes}
    if not all(_reads_its_row(b, len(rows), made) for b in facts.blocks):
        return None
    return len(rows) if all(is_along_row(b, facts) for b in sums) else None


def _reads_its_row(block: Block, rows: int, made: Set[str]) -> bool:
    own = tuple(Var(it.name) for it in spatial(block)[:rows])
    return all(r.indices[:rows] == own for r in reads_of(block) if r.buffer in made)


def is_along_row(block: Block, facts: Facts) -> bool:
    """Whether a reduction reads neighbouring elements one after another."""
    axis = reductions(block)[-1].name
    strides = [flat_stride(r, facts.buffers[r.buffer], axis) for r in reads_of(block)]
    return any(s == 1 for s in strides)


def schedule_rows(sch: Schedule, facts: Facts, rows: int, target: CpuTarget) -> None:
    """Schedule all blocks row by row."""
    if reductions(facts.blocks[-1]):
        sch.cache_write(facts.blocks[-1].name, "local")  # partial results stay within the row
        facts = facts_of(sch.func)
    last = facts.blocks[-1]
    total = sum(work(b) for b in facts.blocks)
    loops = [loop_of(it) for it in spatial(last)[:rows]]
    if loops:
        row = sch.fuse(*loops) if rows > 1 else loops[0]
        for b in reversed(facts.blocks[:-1]):
            sch.compute_at(b.name, row)
        if is_shared(sch, last.name, total):
            sch.parallel(row)
    for b in facts.blocks:
        _vectorize(sch, b, rows, target)


def _vectorize(sch: Schedule, before: Block, rows: int, target: CpuTarget) -> None:
    """Lay the last axis of one block over vector lanes."""
    lanes = target.lanes(value_of(before).dtype.bits)
    axes = reductions(before) or spatial(before)[rows:]
    if not axes:
        return
    extent = typical_extent(axes[-1].extent)
    wide = extent >= lanes
    vectors = min(UNROLL, max(1, extent // lanes))
    factor = lanes * vectors_together(sch, before.name, vectors, axes[-1].extent, lanes)
    if reductions(before):
        reduce_in_lanes(sch, before.name, axes[-1].name, factor if wide else 0, lanes)
    elif wide:
        block = facts_of(sch.func).block(before.name)
        _, inner = sch.split(_loop_over(block, axes[-1].name), [None, factor])
        sch.vectorize(inner)


def _loop_over(block: Block, axis: str) -> str:
    """The loop that an axis runs over, inside the row loop."""
    return loop_of(next(it for it in block.iters if it.name == axis))
