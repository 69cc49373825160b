"""Padded data of a convolution whose windows step along the vectors: each phase in one piece.

    padded[y, 2 * x + tap]            →      padded[y, tap % 2, x + tap // 2]

A vector of neighbouring windows takes every second pixel. They are picked once, by the copy that
pads the data, or by one of its own, rather than by every tap and filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    value_of,
)
from tilewright.schedule.analysis.tile_axes import TileAxes
from tilewright.schedule.builtin.cpu.injective import parallelize_evenly
from tilewright.schedule.builtin.cpu.parallelize import is_parallel
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# The least elements of a vector.
MIN_LANES = 4
# Vectors of a phase that are written out.
MAX_VECTORS = 8
# By how much lines may grow for the sake of aligned vectors: a cache holds so many fewer.
MAX_GROWTH = 1.25


@dataclass(frozen=True)
class PhaseCopy:
    """The block `name` copies lines, each in `step` phases; it is still to be scheduled."""

    name: str
    step: int


def store_by_phase(
    sch: Schedule, name: str, axes: TileAxes, constants: frozenset[str], target: CpuTarget
) -> PhaseCopy | None:
    """Store what steps along N by phases."""
    graph, b = block_graph(sch.func), axes.packed_b
    if b is None or b.buffer in constants or b.mask is not None:
        return None
    step = stride_of(b.indices[-1], axes.n.name) or 0
    if not 2 <= step <= MAX_DENSE_STRIDE or as_int(axes.n.extent) is None:
        return None
    copies = [x for x in graph.blocks if x.writes[0].buffer == b.buffer and _is_copy(x, graph)]
    made = copies[0].name if copies else sch.cache_read(name, b.buffer, "global")
    copy = block_graph(sch.func).block(made)
    lanes, last = target.lanes(b.dtype.bits), len(b.indices) - 1
    line = spatial(copy)[-1]
    sch.pad(made, line.name, step * _whole_vectors(typical_extent(line.extent), step, lanes))
    whole = [(d, 0, 0) for d in range(last)]
    sch.transform_layout(copy.writes[0].buffer, [*whole, (last, step, 1), (last, step, 0)])
    return PhaseCopy(made, step)


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


def schedule_phase_copy(sch: Schedule, copy: PhaseCopy, target: CpuTarget) -> None:
    """Copy all lines before they are used, in parallel."""
    block = block_graph(sch.func).block(copy.name)
    loops = [loop_of(it) for it in spatial(block)]
    *outer, _ = loops
    copy_lines(sch, copy.name, loops, copy.step, target)
    for loop in outer[1:][-1:]:
        sch.annotate(loop, PARTITION.key, 1)
    if is_parallel(sch, block.name, op_count(block)):
        parallelize_evenly(sch, block.name, outer[:-1] or outer, target)


def copy_lines(
    sch: Schedule, name: str, loops: Sequence[str], step: int, target: CpuTarget
) -> None:
    """Copy a line, the last of the loops, in vectors of each phase, or one that holds it.

    The first and the last contain padding. The masks of a line that is written out are known, see
    `finalize/cpu/known_masks.py`.
    """
    block = block_graph(sch.func).block(name)
    length, lanes = typical_extent(spatial(block)[-1].extent), target.lanes(_bits(block))
    while lanes // 2 * step >= length and lanes > MIN_LANES:
        lanes //= 2
    vector, lane, phase = sch.split(loops[-1], [None, lanes, step])
    sch.reorder(*loops[:-1], vector, phase, lane)
    if length <= MAX_VECTORS * lanes * step:
        sch.unroll(vector)
    else:
        sch.annotate(vector, PARTITION.key, 1)
    sch.unroll(phase)
    sch.vectorize(lane)


def _bits(block: Block) -> int:
    return value_of(block).dtype.bits
