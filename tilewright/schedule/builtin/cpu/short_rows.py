"""Reductions of short rows: as many rows at once as a vector has elements.

    parallel (rows, a vector of them at a time)
      s[16] = 0                                    a register
      for k in unroll(n): s[16] += x[16 rows, k]
      y[16] = epilogue(s[16])

A row by itself would be two vectors at most, and its lanes would be combined in more steps than it
took to reduce it. The elements of a column are a row's length apart; squares of them are loaded by
rows and transposed in registers (`finalize/cpu/transpose_loads`).
"""

from __future__ import annotations

from tilewright.arith.expr import as_int
from tilewright.ir.loop.annotations import VERSIONED
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_stride,
    is_simple,
    is_unit,
    loop_of,
    op_count,
    reads_of,
    reductions,
    spatial,
    uses,
    value_of,
)
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# Vectors of a longer row take fewer instructions than transposing them.
MAX_VECTORS = 2


def is_short_rows(block: Block, graph: BlockGraph, target: CpuTarget) -> bool:
    """Whether a function reduces short rows, each to one result."""
    if not (is_simple(block) and spatial(block) and len(reductions(block)) == 1):
        return False
    *_, row = spatial(block)
    (column,) = reductions(block)
    lanes = target.lanes(value_of(block).dtype.bits)
    if 2 * lanes > target.vector_registers or (as_int(row.extent) or 0) < lanes:
        return False
    if not 1 < (as_int(column.extent) or 0) <= MAX_VECTORS * lanes or not _is_alone(block, graph):
        return False
    reads = [r for r in reads_of(block) if uses(r, row.name)]
    strides = [flat_stride(r, graph.buffers[r.buffer], row.name) for r in reads]
    rows = all(is_unit(r, graph, column.name) for r in reads)
    return bool(reads) and rows and all(s is not None and s > 1 for s in strides)


def _is_alone(block: Block, graph: BlockGraph) -> bool:
    """Whether nothing is computed before a reduction, and of each row one result behind it."""
    extents = [[it.extent for it in spatial(b)] for b in graph.blocks]
    return graph.blocks[0] is block and all(found == extents[0] for found in extents)


def schedule_short_rows(sch: Schedule, name: str, epilogue: str, target: CpuTarget) -> None:
    """Schedule a reduction of short rows; `epilogue` is the block that reads its result."""
    block = block_graph(sch.func).block(name)
    *outer, last = [loop_of(it) for it in spatial(block)]
    (column,) = [loop_of(it) for it in reductions(block)]
    lanes = target.lanes(value_of(block).dtype.bits)
    rows, lane = sch.split(last, [None, lanes])
    sch.reorder(*outer, rows, column, lane)
    *_, written = sch.reverse_compute_at(epilogue, rows)
    sch.vectorize(sch.split(written, [None, lanes])[-1])
    sch.unroll(column)
    sch.vectorize(lane)
    sch.set_scope(block.writes[0].buffer, "register")
    sch.decompose_reduction(name, column)
    if is_parallel(sch, name, op_count(block)):
        shared = fuse_parallel(sch, name, [*outer, rows])
        if outer:
            sch.annotate(shared, VERSIONED.key, 1)  # whole vectors need no masks
