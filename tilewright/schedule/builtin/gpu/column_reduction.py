"""Reductions down columns: neighbouring threads read neighbouring columns, several rows at a time.

    grid: (part of the rows, some columns)
      thread (row, lane): s[vector] += x[row, vector]          registers, some rows prefetched
      thread (row, lane): t[row, vector] = s[vector]           shared
      thread (column, adder): u = sum of some t[:, column];  allreduce (adders): y[column]

Columns may be any number: a row of a block is as long as a few cache lines, or as short as there
are columns. A GEMV is such a reduction: its weights are read once.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from tilewright.arith.expr import as_int, product
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, Buffer, Iter
from tilewright.ir.loop.thread_mapping import WARP_SIZE
from tilewright.schedule.analysis.blocks import (
    block_graph,
    flat_stride,
    loop_of,
    reads_of,
    reductions,
    spatial,
    uses,
)
from tilewright.schedule.builtin.gpu.thread_per_element import (
    THREADS,
    bind_threads,
    divisors,
    own_loops,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.sm_90a import OCCUPANCY
from tilewright.target.gpu import GpuTarget

# Vectors that a thread reads before it adds them.
PREFETCH_VECTORS = 8
# The bytes of a row that a block reads, less if blocks are few; the threads that it has at least.
ROW_BYTES, MIN_THREADS = (256, 128, 64), 64
# The fewest terms of a thread: with less, threads wait for one another longer than they add.
MIN_TERMS = 4
# The fewest terms of a thread in a part, which it adds while another launch begins.
PART_TERMS = 16
MAX_PARTS = 256


@node
class ColumnPlan:
    """Threads of a block: `lanes` along a row, `width` columns each, and `rows` of those.

    A thread reads `prefetch` vectors before it adds them; the rows are split into `parts`.
    """

    lanes: int
    width: int
    rows: int
    prefetch: int
    parts: int


def plan_columns(block: Block, buffers: dict[str, Buffer], target: GpuTarget) -> ColumnPlan | None:
    """The plan of a reduction down columns.

    `None` if a block is none, or if there are columns enough for a thread each.
    """
    axes = spatial(block)
    size = as_int(axes[-1].extent) if axes else None
    points, terms = _count(axes), _count(reductions(block))
    reads = [r for r in reads_of(block) if axes and uses(r, axes[-1].name)]
    near = all(flat_stride(r, buffers[r.buffer], axes[-1].name) == 1 for r in reads)
    if not size or not points or not terms or not reads or not near:
        return None
    if any(r.mask is not None for r in reads_of(block)) or _has_windows(block):
        return None
    bits = max(r.dtype.bits for r in reads)
    width = gcd(target.lanes(bits), size)
    # The bytes in flight if there were one row of threads, and how many rows keep memory busy.
    flight = points * bits // 8 * min(terms, PREFETCH_VECTORS)
    wanted = -(-target.sm_count * OCCUPANCY.column_reduction_bytes // flight)
    plan = None
    for row_bytes in ROW_BYTES if wanted > 1 else ():
        lanes = -(-size // (width * -(-size * bits // (8 * row_bytes))))
        rows = min(max(wanted, -(-MIN_THREADS // lanes)), terms // MIN_TERMS, THREADS // lanes)
        rows = 1 << (max(1, rows).bit_length() - 1)
        if rows == 1:
            break
        blocks = points // size * -(-size // (lanes * width))
        parts = _parts(terms, rows, target.sm_count * OCCUPANCY.column_reduction_blocks // blocks)
        own = -(-terms // (parts * rows))
        plan = ColumnPlan(lanes, width, rows, -(-own // -(-own // PREFETCH_VECTORS)), parts)
        if 2 * blocks * parts >= target.sm_count:
            break
    return plan


def _parts(terms: int, rows: int, wanted: int) -> int:
    """Into how many parts to split the rows of a block: a divisor of them."""
    most = min(wanted, terms // (rows * PART_TERMS), MAX_PARTS)
    return max((n for n in range(1, most + 1) if terms % n == 0), default=1)


def _has_windows(block: Block) -> bool:
    """Whether neighbours read the same elements: a thread that has several reads them once."""
    axes = {it.name for it in spatial(block)}
    terms = {it.name for it in reductions(block)}
    used = (free_vars(index) for read in reads_of(block) for index in read.indices)
    return any(names & axes and names & terms for names in used)


def _count(axes: tuple[Iter, ...]) -> int | None:
    return as_int(simplify(product(tuple(it.extent for it in axes))))


def schedule_columns(sch: Schedule, name: str, plan: ColumnPlan) -> None:
    """Schedule a reduction whose result one other block reads, element by element."""
    prefetch = sch.choose(f"{name}.prefetch", plan.prefetch, lambda: divisors(plan.prefetch))
    plan = replace(plan, prefetch=prefetch)
    graph = block_graph(sch.func)
    block = graph.block(name)
    (last,) = graph.consumers(block.writes[0].buffer)
    depth = own_loops(sch, block)[len(spatial(block)) :]
    down = str(sch.fuse(*depth)) if len(depth) > 1 else depth[0]
    *_, row = sch.split(down, [None, plan.prefetch, plan.rows])
    part = str(sch.rfactor(name, row, own_start=True))
    sums = block_graph(sch.func).block(part).writes[0].buffer
    copy = str(sch.cache_read(name, sums, "shared"))
    sch.set_scope(sums, "register")
    *loops, columns = [loop_of(it) for it in spatial(last)]
    columns, column = sch.split(columns, [None, plan.lanes * plan.width])
    grid = str(sch.fuse(*loops, columns)) if loops else str(columns)
    for nest in (name, copy, part):
        sch.compute_at(nest, grid)
    _bind_rows(sch, part, plan)
    _bind_rows(sch, copy, plan)
    _add_rows(sch, name, plan)
    sch.bind(column, "thread")
    sch.bind(grid, "grid")


def _bind_rows(sch: Schedule, name: str, plan: ColumnPlan) -> None:
    """Distribute a nest over the threads: its loops are over rows, others of length 1, columns."""
    block = block_graph(sch.func).block(name)
    own = own_loops(sch, block)
    *rows, lane = own[: len(spatial(block))]
    down, vectors = own[len(spatial(block)) :], []
    if plan.width > 1:
        lane, vector = sch.split(lane, [plan.lanes, plan.width])
        sch.reorder(*down, vector)
        vectors.append(vector)
    if down:
        init = sch.decompose_reduction(name, down[0])
        vectors += own_loops(sch, block_graph(sch.func).block(init))
        sch.unroll(down[-1])
    for vector in vectors:
        sch.vectorize(vector)
    bind_threads(sch, [*rows, lane])


def _add_rows(sch: Schedule, name: str, plan: ColumnPlan) -> None:
    """Add the sums of the rows, some threads together for each column."""
    adders = _adders(plan)
    block = block_graph(sch.func).block(name)
    sch.set_scope(block.writes[0].buffer, "shared")
    *ones, column, row = own_loops(sch, block)
    if adders > 1:
        several, adder = sch.split(row, [None, adders])
        sch.reorder(adder, several)
        part = str(sch.rfactor(name, adder))
        block = block_graph(sch.func).block(part)
        sch.set_scope(block.writes[0].buffer, "register")
        bind_threads(sch, [*ones, column, adder])
        sch.decompose_reduction(part, several)
        sch.unroll(several)
        *ones, column, row = own_loops(sch, block_graph(sch.func).block(name))
        sch.bind(row, "allreduce")
    else:
        sch.unroll(row)
    bind_threads(sch, [*ones, column])


def _adders(plan: ColumnPlan) -> int:
    """The threads that add the sums of a column together: of whole warps, as shuffles need."""
    columns = plan.lanes * plan.width
    most = min(plan.rows // plan.width, plan.rows // 2, WARP_SIZE)
    counts = (1 << n for n in range(most.bit_length()))
    return max((n for n in counts if columns * n % WARP_SIZE == 0), default=1)
