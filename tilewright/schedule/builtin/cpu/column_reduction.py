"""Reductions down columns: sums over outer axes, where neighbouring results read neighbours.

    parallel (part of the rows, outer axes, panel of columns)
      s[panel] = 0                                               L1
      for rows, a few at a time
        for vectors of the panel: s[vector] += x[row, vector]    of those rows, in a register
      y[panel] = epilogue(s[panel])

Every element is read once, so bandwidth is the bottleneck: a few rows are read side by side as
long streams, which the prefetchers follow, and an accumulator is loaded and stored once for all of
them. So few rows in all need no accumulators in memory. Where columns give the cores too little to
do, the rows are cut into parts, whose sums are added at the end.
"""

from __future__ import annotations

from math import prod

from tilewright.arith.expr import as_int
from tilewright.ir.loop.annotations import PARTITION
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    is_simple,
    is_unit,
    loop_of,
    op_count,
    reads_of,
    reductions,
    spatial,
    typical_extent,
    uses,
    value_of,
)
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import divisors
from tilewright.schedule.builtin.cpu.parallelize import (
    BALANCED_TASKS_PER_CORE,
    PARALLEL_WORK,
    fuse_parallel,
    is_parallel,
    load_imbalance,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# Rows that are read side by side: fewer than the streams that a prefetcher follows.
STREAMED_ROWS = 8
# Bytes of a row that are read at once, at least: shorter streams end before they are prefetched.
MIN_PANEL_BYTES = 1024
# Rows that a part must have, for its result to be cheap beside it.
MIN_PART_ROWS = 4 * STREAMED_ROWS
# Load imbalance that parts may have.
MAX_PART_IMBALANCE = 1.1


def is_column_reduction(block: Block, graph: BlockGraph) -> bool:
    """Whether neighbouring results read neighbouring elements."""
    if not (is_simple(block) and spatial(block) and reductions(block)):
        return False
    column = spatial(block)[-1].name
    reads = [r for r in reads_of(block) if uses(r, column)]
    return bool(reads) and all(is_unit(r, graph, column) for r in reads)


def schedule_column_reduction(sch: Schedule, name: str, epilogue: str, target: CpuTarget) -> None:
    """Schedule a reduction down columns; `epilogue` is the block that reads its result."""
    block = block_graph(sch.func).block(name)
    columns = _panel(block, target)
    parts = _parts(block, columns, target)
    parts = sch.choose(f"{name}.parts", parts, lambda: sorted({1, parts, target.cores}))
    if parts > 1:
        part, _ = sch.split(loop_of(reductions(block)[0]), [parts, None])
        partial = sch.rfactor(name, part)
        _schedule_nest(sch, partial, sch.cache_write(partial, "local"), columns, target)
    _schedule_nest(sch, name, epilogue, columns, target)


def _panel(block: Block, target: CpuTarget) -> int:
    """Columns whose accumulators stay in L1, fewer where that gives the cores work."""
    dtype, column = value_of(block).dtype, typical_extent(spatial(block)[-1].extent)
    lanes = min(target.lanes(dtype.bits), column)
    least = -(-column * dtype.bytes // (target.l1 // 4))
    wanted = -(-BALANCED_TASKS_PER_CORE * target.cores // _tasks(block))
    count = max(least, min(wanted, column * dtype.bytes // MIN_PANEL_BYTES))
    return -(-column // (lanes * count)) * lanes


def _tasks(block: Block) -> int:
    """Independent reductions of whole rows."""
    return prod(typical_extent(it.extent) for it in spatial(block)[:-1])


def _parts(block: Block, columns: int, target: CpuTarget) -> int:
    """The fewest equal parts of the rows that give the cores as even work as parts can."""
    rows = as_int(reductions(block)[0].extent)
    if not rows or op_count(block) < PARALLEL_WORK:
        return 1
    panels = -(-typical_extent(spatial(block)[-1].extent) // columns)
    tasks = _tasks(block) * panels
    possible = [n for n in divisors(rows) if n == 1 or rows // n >= MIN_PART_ROWS]
    return min(
        possible, key=lambda n: max(MAX_PART_IMBALANCE, load_imbalance(tasks * n, target.cores))
    )


def _schedule_nest(
    sch: Schedule, name: str, epilogue: str, columns: int, target: CpuTarget
) -> None:
    """One reduction, and the block that reads a panel of its results."""
    block = block_graph(sch.func).block(name)
    *outer, last = [loop_of(it) for it in spatial(block)]
    sums = [loop_of(it) for it in reductions(block)]
    rows = [typical_extent(it.extent) for it in reductions(block)]
    lanes = min(target.lanes(value_of(block).dtype.bits), columns)
    panel, vector, lane = sch.split(last, [None, columns // lanes, lanes])
    if len(rows) == 1 and rows[0] <= STREAMED_ROWS:
        row = sums[0]
        sch.reorder(*outer, panel, vector, row, lane)
        *_, written = sch.reverse_compute_at(epilogue, vector)
        sch.set_scope(block.writes[0].buffer, "register")
    else:
        sums[-1], row = sch.split(sums[-1], [None, -(-rows[-1] // -(-rows[-1] // STREAMED_ROWS))])
        sch.annotate(row, PARTITION.key, 2)
        sch.reorder(*outer, panel, *sums, vector, row, lane)
        *_, written = sch.reverse_compute_at(epilogue, panel)
    sch.vectorize(sch.split(written, [None, lanes])[-1])
    sch.unroll(row)
    sch.vectorize(lane)
    sch.decompose_reduction(name, sums[0])
    if is_parallel(sch, name, op_count(block)):
        fuse_parallel(sch, name, [*outer, panel])
