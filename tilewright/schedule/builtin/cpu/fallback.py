"""Functions with several results, or blocks without common rows: each nest on its own.

A reduction along rows has one partial result for each SIMD lane, one down columns a panel of
accumulators; rows and panels run in parallel. Other reductions stay as they are.
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    loop_of,
    op_count,
    reductions,
    spatial,
    typical_extent,
    value_of,
)
from tilewright.schedule.builtin.cpu.column_reduction import (
    is_column_reduction,
    schedule_column_reduction,
)
from tilewright.schedule.builtin.cpu.injective import UNROLL, vectors_together
from tilewright.schedule.builtin.cpu.parallelize import is_parallel
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
        elif is_column_reduction(b, graph):
            copy = sch.cache_write(b.name, "local")
            schedule_column_reduction(sch, b.name, copy, target)
        else:
            sch.decompose_reduction(b.name, loop_of(reductions(b)[0]))


def _schedule_rows(sch: Schedule, block: Block, target: CpuTarget) -> None:
    """A reduction along rows: one partial result for each lane."""
    lanes = target.lanes(value_of(block).dtype.bits)
    axis = reductions(block)[-1]
    vectors = min(UNROLL, typical_extent(axis.extent) // lanes)
    factor = lanes * vectors_together(sch, block.name, vectors, axis.extent, lanes)
    if spatial(block):
        copied = sch.cache_write(block.name, "local")
        copy = block_graph(sch.func).block(copied)
        loops = [loop_of(it) for it in copy.iters]
        row = sch.fuse(*loops) if len(loops) > 1 else loops[0]
        sch.compute_at(block.name, row)
        if is_parallel(sch, block.name, op_count(block)):
            sch.parallel(row)
    reduce_in_lanes(sch, block.name, axis.name, factor, lanes)
