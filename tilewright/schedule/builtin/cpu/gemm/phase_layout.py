"""Padded data of a convolution whose windows step along the vectors: each phase in one piece.

    padded[y, 2 * x + tap]            →      padded[y, tap % 2, x + tap // 2]

A vector of neighbouring windows takes every second pixel. They are picked once, by the copy that
pads the data, or by one of its own, rather than by every tap and filter.
"""

from __future__ import annotations

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Var, as_int
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
    typical_extent,
)
from tilewright.schedule.analysis.tile_axes import TileAxes
from tilewright.schedule.builtin.cpu.injective import parallelize_evenly
from tilewright.schedule.builtin.cpu.parallelize import is_parallel
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# Vectors of a phase that are written out.
MAX_VECTORS = 8
# By how much lines may grow for the sake of aligned vectors: a cache holds so many fewer.
MAX_GROWTH = 1.25


def store_by_phase(
    sch: Schedule, name: str, axes: TileAxes, constants: frozenset[str], target: CpuTarget
) -> frozenset[str]:
    """Store what steps along N by phases; the blocks that copy it, which are then scheduled."""
    graph, b = block_graph(sch.func), axes.packed_b
    if b is None or b.buffer in constants or b.mask is not None:
        return frozenset()
    step = stride_of(b.indices[-1], axes.n.name) or 0
    if not 2 <= step <= MAX_DENSE_STRIDE or as_int(axes.n.extent) is None:
        return frozenset()
    copies = [x for x in graph.blocks if x.writes[0].buffer == b.buffer and _is_copy(x, graph)]
    made = copies[0].name if copies else sch.cache_read(name, b.buffer, "global")
    copy = block_graph(sch.func).block(made)
    lanes, last = target.lanes(b.dtype.bits), len(b.indices) - 1
    line = spatial(copy)[-1]
    sch.pad(made, line.name, step * _whole_vectors(typical_extent(line.extent), step, lanes))
    whole = [(d, 0, 0) for d in range(last)]
    sch.transform_layout(copy.writes[0].buffer, [*whole, (last, step, 1), (last, step, 0)])
    _schedule_copy(sch, block_graph(sch.func).block(made), step, lanes, target)
    return frozenset({made})


def _whole_vectors(length: int, step: int, lanes: int) -> int:
    """The multiple to which a phase is padded: vectors, which are then aligned, if it is long."""
    rounded = -(-length // (step * lanes)) * step * lanes
    return lanes if rounded <= MAX_GROWTH * length else 1


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
    """Vectors of each phase; the first and the last of a line, and of lines, contain padding.

    The masks of a line that is written out are known, see `finalize/cpu/known_masks.py`.
    """
    *outer, line = (loop_of(it) for it in spatial(block))
    length = typical_extent(spatial(block)[-1].extent)
    vector, lane, phase = sch.split(line, [None, lanes, step])
    sch.reorder(*outer, vector, phase, lane)
    if length <= MAX_VECTORS * lanes * step:
        sch.unroll(vector)
    else:
        sch.annotate(vector, PARTITION.key, 1)
    sch.unroll(phase)
    sch.vectorize(lane)
    for loop in outer[1:][-1:]:
        sch.annotate(loop, PARTITION.key, 1)
    if is_parallel(sch, block.name, op_count(block)):
        parallelize_evenly(sch, block.name, outer[:-1] or outer, target)
