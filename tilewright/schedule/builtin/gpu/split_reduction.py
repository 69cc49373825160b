"""Long reductions of which there are few: split into parts, reduced by a launch of their own.

y = sum over k of x[k]   →   y.rf[g] = sum over j of x[g * n + j]      many thread blocks
                            y = sum over g of y.rf[g]
"""

from __future__ import annotations

from math import isqrt

from tilewright.arith.expr import as_int, product
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import BlockGraph, block_graph, reductions, spatial
from tilewright.schedule.builtin.cpu.rowwise import is_along_row
from tilewright.schedule.builtin.gpu.block_reduction import (
    plan_block_reduction,
    schedule_block_reduction,
)
from tilewright.schedule.builtin.gpu.column_reduction import plan_columns, schedule_columns
from tilewright.schedule.builtin.gpu.rowwise import schedule_rowwise
from tilewright.schedule.builtin.gpu.thread_per_element import (
    divisors,
    own_loops,
    schedule_points,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.sm_90a import OCCUPANCY
from tilewright.target.gpu import GpuTarget

# The shortest part that a thread block reduces, and the shortest reduction of one thread.
BLOCK_TERMS, THREAD_TERMS = 4096, 32
# The most parts that a search considers: the second launch adds them one after another.
MAX_PARTS = 1024


def parts_of(block: Block, graph: BlockGraph, target: GpuTarget) -> int:
    """Into how many parts to split a reduction; 1 if it is better not split."""
    terms, points = (
        as_int(simplify(product(tuple(it.extent for it in axes))))
        for axes in (reductions(block), spatial(block))
    )
    if not terms or not points:
        return 1
    plan = plan_columns(block, graph.buffers, target)
    if plan is None and is_along_row(block, graph):
        wanted = target.sm_count * OCCUPANCY.split_reduction_blocks // points
        # Parts of the first of several axes have whole rows of the last one.
        whole = as_int(reductions(block)[0].extent) or 1
        most = min(wanted, terms // BLOCK_TERMS)
        return max((n for n in range(1, most + 1) if whole % n == 0), default=1)
    if terms < THREAD_TERMS:
        return 1
    if plan is not None:
        return plan.parts
    # A thread adds up a part, and later all parts: no more parts than terms of a part.
    most = min(target.sm_count * OCCUPANCY.split_reduction_threads // points, isqrt(terms))
    return next((n for n in range(most, 0, -1) if terms % n == 0), 1)


def part_counts(block: Block, graph: BlockGraph, target: GpuTarget) -> list[int]:
    """Into how many parts a reduction can be split: divisors, each with terms for a warp to add.

    One that goes down columns has the parts of its plan, or is not split.
    """
    terms = as_int(simplify(product(tuple(it.extent for it in reductions(block)))))
    plan = plan_columns(block, graph.buffers, target)
    if not terms or plan is not None:
        return [1, plan.parts] if plan is not None else [1]
    most = min(MAX_PARTS, terms // target.warp_size)
    return [n for n in divisors(terms) if n <= most]


def split_sum(sch: Schedule, name: str, parts: int, target: GpuTarget) -> None:
    """Split a reduction and schedule its parts."""
    before = block_graph(sch.func)
    plan = plan_columns(before.block(name), before.buffers, target)
    along = plan is None and is_along_row(before.block(name), before)
    own = own_loops(sch, before.block(name))
    count = len(spatial(before.block(name)))
    first, *others = own[count:]
    whole = as_int(reductions(before.block(name))[0].extent)
    if others and not (along and whole and whole % parts == 0):
        first, others = str(sch.fuse(first, *others)), []
    part, rest = sch.split(first, [parts, None])
    sch.reorder(part, *own[:count], rest, *others)
    partial = str(sch.rfactor(name, part))
    graph = block_graph(sch.func)
    block = graph.block(partial)
    block_plan = plan_block_reduction(block, target)
    if along and block_plan is not None:
        schedule_block_reduction(sch, partial, block_plan)
    elif along:
        schedule_rowwise(sch, BlockGraph((block,), graph.buffers, graph.outputs), count + 1, target)
    elif plan is not None:
        sch.cache_write(partial, "shared")
        schedule_columns(sch, partial, plan)
    else:
        schedule_points(sch, block, target)
