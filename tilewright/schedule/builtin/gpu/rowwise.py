"""Row-wise kernels: softmax, norms, reductions along the last axis, in one pass over each row.

A group of threads has a row, and a block has several groups. What is read of a row and what is
computed of it stays in the registers of these threads from the first stage to the last, if it fits.

    grid: rows
      thread (row, lane): x[vectors]                    registers, 16 bytes at a time
      thread (row, lane): peak.rf = max(x[vectors])
      allreduce (lanes):  peak = max(peak.rf)          in every thread
      thread (row, lane): e[vectors] = exp(x[vectors] - peak)
      ...

Rows of unknown or great length, or of several axes, are read again in each stage, some vectors
ahead.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    loop_of,
    reads_of,
    reductions,
    spatial,
    typical_extent,
)
from tilewright.schedule.builtin.gpu.rowwise_plan import (
    RowwisePlan,
    choose_rows,
    register_arrays,
    wide_blocks,
)
from tilewright.schedule.builtin.gpu.thread_per_element import bind_threads, own_loops
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Rows shorter than this are reduced by one thread each, and those reduced several times.
MIN_COOPERATIVE_ROW, MIN_SHARED_ROW = 16, 4


def is_short(graph: BlockGraph) -> bool:
    """Whether rows are too short to be reduced by several threads."""
    sums = [b for b in graph.blocks if reductions(b)]
    least = MIN_COOPERATIVE_ROW if len(sums) == 1 else MIN_SHARED_ROW
    return all(_length(b) < least for b in sums)


def _length(block: Block) -> int:
    total = 1
    for it in reductions(block):
        total *= typical_extent(it.extent)
    return total


def schedule_rowwise(
    sch: Schedule,
    graph: BlockGraph,
    rows: int,
    target: GpuTarget,
    plan: RowwisePlan | None = None,
) -> None:
    """Schedule the blocks of `graph` row by row, by a plan that is given or chosen."""
    others = {b.name for b in block_graph(sch.func).blocks} - {b.name for b in graph.blocks}
    _inline_row_values(sch, graph, rows)
    if reductions(graph.blocks[-1]):
        sch.cache_write(graph.blocks[-1].name, "shared")
    graph = without(block_graph(sch.func), others)
    plan = plan or choose_rows(sch, graph, rows, target)
    if plan.in_registers:
        _keep_in_registers(sch, graph, rows)
        graph = without(block_graph(sch.func), others)
    outer = _number_blocks(sch, graph, rows, plan)
    last = graph.blocks[-1]
    wide = {b.name for b in wide_blocks(graph, rows)}
    for b in graph.blocks:
        count = min(rows, 1) if b is last else rows
        if reductions(b):
            _sum_rows(sch, b, count, plan, wide)
        else:
            _map_rows(sch, b.name, count, plan)
    sch.bind(outer, "grid")


def without(graph: BlockGraph, names: Collection[str]) -> BlockGraph:
    """The graph of all but some blocks."""
    return replace(graph, blocks=tuple(b for b in graph.blocks if b.name not in names))


def _inline_row_values(sch: Schedule, graph: BlockGraph, rows: int) -> None:
    """Inline the scalars of a row: every thread computes them for itself."""
    for b in graph.blocks[:-1]:
        one_a_row = len(spatial(b)) == rows and not reductions(b)
        if one_a_row and b.writes[0].buffer not in graph.outputs:
            sch.inline(b.name)


def _keep_in_registers(sch: Schedule, graph: BlockGraph, rows: int) -> None:
    """Keep what is read of a row, and what is computed of it, in registers."""
    made = {b.writes[0].buffer for b in graph.blocks}
    held = register_arrays(graph, rows)
    for name in held:
        if name in made:
            sch.set_scope(name, "register")
            continue
        for b in graph.blocks:
            if name in {load.buffer for load in reads_of(b)}:
                sch.cache_read(b.name, name, "register")


def _number_blocks(sch: Schedule, graph: BlockGraph, rows: int, plan: RowwisePlan) -> str:
    """The loop over blocks of rows, with everything in it."""
    last = graph.blocks[-1]
    loops = [loop_of(it) for it in spatial(last)[:rows]]
    if not loops:
        return str(sch.add_unit_loop(graph.blocks[0].name))
    loops[-1], _ = sch.split(loops[-1], [None, plan.rows_per_block])
    outer = str(sch.fuse(*loops)) if rows > 1 else loops[0]
    for b in reversed(graph.blocks[:-1]):
        sch.compute_at(b.name, outer)
    return outer


def _distribute(sch: Schedule, columns: list[str], plan: RowwisePlan) -> tuple[str, list[str]]:
    """Distribute a row: the loop over threads, and the loops over a thread's elements."""
    *outer, chunk = columns
    inner = []
    if plan.vector_width > 1:
        chunk, vector = sch.split(chunk, [None, plan.vector_width])
        inner = [vector]
    if outer:
        chunk = str(sch.fuse(*outer, chunk))
    if plan.prefetch > 1:
        step, part, lane = sch.split(chunk, [None, plan.prefetch, plan.lanes_per_row])
        inner = [part, *inner]
    else:
        step, lane = sch.split(chunk, [None, plan.lanes_per_row])
    sch.reorder(lane, step, *inner)  # a thread has all its elements between two barriers
    return lane, [step, *inner]


def _map_rows(sch: Schedule, name: str, rows: int, plan: RowwisePlan) -> None:
    """Distribute the elements of each row; the first `rows` loops of a block are over rows."""
    own = own_loops(sch, block_graph(sch.func).block(name))
    if own[rows:]:
        lane, parts = _distribute(sch, own[rows:], plan)
        sch.bind(lane, "thread")
        if plan.vector_width > 1:
            sch.vectorize(parts.pop())
        for part in parts if plan.in_registers else parts[1:]:
            sch.unroll(part)
    bind_threads(sch, own[:rows])


def _sum_rows(sch: Schedule, block: Block, rows: int, plan: RowwisePlan, wide: set[str]) -> None:
    """Partial reductions, one for each thread, and their all-reduce over the threads of a row."""
    name = block.name
    own = own_loops(sch, block_graph(sch.func).block(name))
    lane, parts = _distribute(sch, own[rows:], plan)
    vectors = plan.vector_width > 1 and not plan.in_registers
    partial = str(sch.rfactor(name, lane, own_start=vectors))
    sch.set_scope(block_graph(sch.func).block(partial).writes[0].buffer, "register")
    vectors = vectors and block_graph(sch.func).block(partial).init is not None
    if vectors:
        partial = _sum_vectors(sch, partial, parts.pop())
    graph = block_graph(sch.func)
    sch.bind(lane, "thread")
    if graph.block(partial).init is not None:
        init = sch.decompose_reduction(partial, parts[0])
        if vectors:
            sch.vectorize(own_loops(sch, block_graph(sch.func).block(init))[-1])
    elif f"{partial}.init" in {b.name for b in graph.blocks}:
        sch.bind(own_loops(sch, graph.block(f"{partial}.init"))[-1], "thread")
    for part in parts if plan.in_registers else parts[1:]:
        sch.unroll(part)
    bind_threads(sch, own[:rows])
    summed = block.writes[0].buffer
    readers = {b.name for b in graph.blocks if summed in {x.buffer for x in reads_of(b)}}
    sch.set_scope(summed, "register" if readers <= wide | {partial} else "shared")
    *numbering, left = own_loops(sch, block_graph(sch.func).block(name))
    sch.bind(left, "allreduce")
    bind_threads(sch, numbering)


def _sum_vectors(sch: Schedule, name: str, vector: str) -> str:
    """Add up vectors as such, and their elements at the end; gives the block that adds vectors."""
    part = str(sch.rfactor(name, vector, own_start=True))
    sch.set_scope(block_graph(sch.func).block(part).writes[0].buffer, "register")
    sch.vectorize(vector)
    *threads, element = own_loops(sch, block_graph(sch.func).block(name))
    bind_threads(sch, threads)
    sch.unroll(element)
    return part
