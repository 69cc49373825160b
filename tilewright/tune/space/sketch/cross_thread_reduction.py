"""Cross-thread reduction: threads of a block sum up a part of a row each, and then together.

It is for reductions along rows with fewer results than a GPU has threads. The loop of partial
results is an all-reduce, of warps or of whole blocks; a block of one warp may have several rows.
"""

from __future__ import annotations

from math import prod

from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    is_simple,
    reductions,
    spatial,
    typical_extent,
)
from tilewright.schedule.builtin.cpu.rowwise import row_axes
from tilewright.schedule.builtin.gpu.rowwise import schedule_rowwise
from tilewright.schedule.builtin.gpu.rowwise_plan import RowwisePlan
from tilewright.target.gpu import GpuTarget
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch

# Results that keep a GPU busy, one thread each.
MIN_BUSY_THREADS = 4096
# Threads of a row, and rows of a block.
LANES, ROWS = (32, 64, 128, 256), (1, 2, 4, 8)
# Terms that are worth the exchange between threads.
MIN_TERMS = 32


def shares_sums(sketch: Sketch, name: str) -> bool:
    """Whether a reduction has few results and long rows, which neighbouring threads can read."""
    block = sketch.block(name)
    if not (is_simple(block) and reductions(block)) or row_axes(_alone(sketch, name)) is None:
        return False
    results = prod(typical_extent(it.extent) for it in spatial(block))
    return results < MIN_BUSY_THREADS and typical_extent(reductions(block)[-1].extent) >= MIN_TERMS


def _alone(sketch: Sketch, name: str) -> BlockGraph:
    graph = sketch.graph
    return BlockGraph((graph.block(name),), graph.buffers, graph.outputs)


def _apply(sketch: Sketch, name: str) -> None:
    sketch.pending[name] = CROSS_THREAD.name


def sum_across_threads(sketch: Sketch, name: str) -> None:
    """Lay a reduction out over the threads of its rows."""
    assert isinstance(sketch.target, GpuTarget)
    graph, sch = _alone(sketch, name), sketch.sch
    lanes = sch.choose(f"{name}.lanes", LANES[0], lambda: LANES)
    several = lanes == sketch.target.warp_size and spatial(graph.block(name))
    rows = sch.choose(f"{name}.rows", ROWS[0], lambda: ROWS) if several else 1
    plan = RowwisePlan(rows, lanes, 1, in_registers=False)
    schedule_rowwise(sch, graph, len(spatial(graph.block(name))), sketch.target, plan)


CROSS_THREAD = SketchRule("cross-thread", shares_sums, _apply)
