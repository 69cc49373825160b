"""Long sums of which there are few: cut into parts that are summed first, by a launch of their own.

y = sum over k of x[k]   →   y.rf[g] = sum over j of x[g * n + j]      many blocks of threads
                            y = sum over g of y.rf[g]
"""

from __future__ import annotations

from math import gcd, isqrt

from tilewright.arith.expr import as_int, product
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import BlockGraph, block_graph, reductions, spatial
from tilewright.schedule.builtin.cpu.rowwise import is_along_row
from tilewright.schedule.builtin.gpu.block_reduction import plan_stream, schedule_stream
from tilewright.schedule.builtin.gpu.column_reduction import plan_columns, schedule_columns
from tilewright.schedule.builtin.gpu.rowwise import schedule_rowwise
from tilewright.schedule.builtin.gpu.thread_per_element import own_loops, schedule_points
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Terms of a part at least, where a block of threads sums it, and of a sum, where one thread does.
BLOCK_TERMS, THREAD_TERMS = 4096, 32
# Blocks of threads, and threads, for each multiprocessor, that keep it busy.
BUSY_BLOCKS, BUSY_THREADS = 4, 2048


def parts_of(block: Block, graph: BlockGraph, target: GpuTarget) -> int:
    """Into how many parts to cut a sum; 1 if it is better left whole."""
    terms, points = (
        as_int(simplify(product(tuple(it.extent for it in axes))))
        for axes in (reductions(block), spatial(block))
    )
    if not terms or not points:
        return 1
    plan = plan_columns(block, graph.buffers, target)
    if plan is None and is_along_row(block, graph):
        wanted = min(target.sm_count * BUSY_BLOCKS // points, terms // BLOCK_TERMS)
        return gcd(terms, 1 << (wanted.bit_length() - 1)) if wanted > 1 else 1
    if terms < THREAD_TERMS:
        return 1
    if plan is not None:
        return plan.parts
    # Parts and their terms are summed one after another: no more of these than of those.
    most = min(target.sm_count * BUSY_THREADS // points, isqrt(terms))
    return next((n for n in range(most, 0, -1) if terms % n == 0), 1)


def cut_sum(sch: Schedule, name: str, parts: int, target: GpuTarget) -> None:
    """Cut a sum and schedule its parts."""
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
    stream = plan_stream(block, target)
    if along and stream is not None:
        schedule_stream(sch, partial, stream)
    elif along:
        schedule_rowwise(sch, BlockGraph((block,), graph.buffers, graph.outputs), count + 1, target)
    elif plan is not None:
        schedule_columns(sch, partial, plan)
    else:
        schedule_points(sch, block, target)
