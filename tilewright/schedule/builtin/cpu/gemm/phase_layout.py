"""Padded data of a convolution whose windows step along the vectors: each phase in one piece.

    padded[y, 2 * x + tap]            →      padded[y, tap % 2, x + tap // 2]

A vector of neighbouring windows takes every second pixel. They are picked once, by the copy that
pads the data, rather than by every tap and filter.
"""

from __future__ import annotations

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Var
from tilewright.arith.vector import MAX_DENSE_STRIDE
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
    spatial,
)
from tilewright.schedule.analysis.tile_axes import TileAxes
from tilewright.schedule.builtin.cpu.injective import parallelize_evenly
from tilewright.schedule.builtin.cpu.parallelize import is_parallel
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget


def store_by_phase(sch: Schedule, axes: TileAxes, target: CpuTarget) -> frozenset[str]:
    """Store what steps along N by phases; the blocks that copy it, which are then scheduled."""
    graph, b = block_graph(sch.func), axes.packed_b
    if b is None:
        return frozenset()
    step = stride_of(b.indices[-1], axes.n.name) or 0
    copies = [x for x in graph.blocks if x.writes[0].buffer == b.buffer and _is_copy(x, graph)]
    if not copies or not 2 <= step <= MAX_DENSE_STRIDE:
        return frozenset()
    lanes = target.lanes(b.dtype.bits)
    sch.pad(copies[0].name, spatial(copies[0])[-1].name, step * lanes)
    last = len(b.indices) - 1
    whole = [(d, 0, 0) for d in range(last)]
    sch.transform_layout(b.buffer, [*whole, (last, step, 1), (last, step, 0)])
    _schedule_copy(sch, block_graph(sch.func).block(copies[0].name), step, lanes, target)
    return frozenset({copies[0].name})


def _is_copy(block: Block, graph: BlockGraph) -> bool:
    """Whether a block copies lines one by one."""
    axes = spatial(block)
    return (
        is_simple(block)
        and block.init is None
        and len(axes) > 1
        and [index for index, _ in block.writes[0].ranges] == [Var(it.name) for it in axes]
        and all(is_unit(r, graph, axes[-1].name) for r in reads_of(block))
    )


def _schedule_copy(sch: Schedule, block: Block, step: int, lanes: int, target: CpuTarget) -> None:
    """Vectors of each phase; the first and the last of a line, and of lines, contain padding."""
    *outer, line = (loop_of(it) for it in spatial(block))
    vector, lane, phase = sch.split(line, [None, lanes, step])
    sch.reorder(*outer, vector, phase, lane)
    sch.unroll(phase)
    sch.vectorize(lane)
    for loop in (*outer[1:][-1:], vector):
        sch.annotate(loop, PARTITION.key, 1)
    if is_parallel(sch, block.name, op_count(block)):
        parallelize_evenly(sch, block.name, outer[:-1] or outer, target)
