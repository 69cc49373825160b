"""Functions with several results, or blocks without common rows: each nest on its own.

A reduction along rows has one partial result for each SIMD lane, one along columns a vector of
accumulators; rows and columns run in parallel. Other reductions stay as they are.
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_stride,
    loop_of,
    op_count,
    reads_of,
    reductions,
    spatial,
    typical_extent,
    uses,
    value_of,
)
from tilewright.schedule.builtin.cpu.injective import UNROLL, vectors_together
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.builtin.cpu.rowwise import is_along_row
from tilewright.schedule.builtin.cpu.simd_reduction import reduce_in_lanes
from tilewright.schedule.builtin.cpu.small_transforms import schedule_formula
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget


def schedule_fallback(
    sch: Schedule, graph: BlockGraph, staged: frozenset[str], target: CpuTarget
) -> None:
    """Schedule every nest; `staged` are formulas that are not inlined."""
    for b in graph.blocks:
        if not reductions(b):
            schedule_formula(sch, b, staged, target)
        elif is_along_row(b, graph):
            _schedule_rows(sch, b, target)
        elif _is_along_columns(b, graph, target):
            _schedule_columns(sch, b, target)
        else:
            sch.decompose_reduction(b.name, loop_of(reductions(b)[0]))


def _schedule_rows(sch: Schedule, block: Block, target: CpuTarget) -> None:
    """A reduction along rows: one partial result for each lane."""
    lanes = target.lanes(value_of(block).dtype.bits)
    axis = reductions(block)[-1]
    vectors = min(UNROLL, typical_extent(axis.extent) // lanes)
    factor = lanes * vectors_together(sch, block.name, vectors, axis.extent, lanes)
    if spatial(block):
        copy = _copied_out(sch, block, "local")
        loops = [loop_of(it) for it in copy.iters]
        row = sch.fuse(*loops) if len(loops) > 1 else loops[0]
        sch.compute_at(block.name, row)
        if is_parallel(sch, block.name, op_count(block)):
            sch.parallel(row)
    reduce_in_lanes(sch, block.name, axis.name, factor, lanes)


def _is_along_columns(block: Block, graph: BlockGraph, target: CpuTarget) -> bool:
    """Whether neighbouring results read neighbouring elements, at least a vector of them."""
    axes = spatial(block)
    if not axes or typical_extent(axes[-1].extent) < target.lanes(value_of(block).dtype.bits):
        return False
    column = axes[-1].name
    reads = [r for r in reads_of(block) if uses(r, column)]
    return bool(reads) and all(flat_stride(r, graph.buffers[r.buffer], column) == 1 for r in reads)


def _schedule_columns(sch: Schedule, block: Block, target: CpuTarget) -> None:
    """A reduction along columns: the accumulators of a panel stay in registers for all rows."""
    lanes = target.lanes(value_of(block).dtype.bits)
    *outer, column = [loop_of(it) for it in spatial(block)]
    extent = spatial(block)[-1].extent
    vectors = min(UNROLL, typical_extent(extent) // lanes)
    factor = lanes * vectors_together(sch, block.name, vectors, extent, lanes)
    copy = _copied_out(sch, block, "local")
    panel, lane = sch.split(column, [None, factor])
    sums = [loop_of(it) for it in reductions(block)]
    sch.reorder(*outer, panel, *sums, lane)
    *_, written = sch.reverse_compute_at(copy.name, panel)
    sch.vectorize(written)
    sch.vectorize(lane)
    sch.decompose_reduction(block.name, sums[0])
    if is_parallel(sch, block.name, op_count(block)):
        fuse_parallel(sch, block.name, [*outer, panel])


def _copied_out(sch: Schedule, block: Block, scope: str) -> Block:
    """Give a reduction an accumulator buffer; the block that copies it to the result."""
    buffer = block.writes[0].buffer
    sch.cache_write(block.name, scope)
    return block_graph(sch.func).block(f"{buffer}.wb")
