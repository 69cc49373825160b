"""Reductions down columns: neighbouring threads read neighbouring columns, several rows at a time.

    grid: (part of the rows, some columns)
      thread (row, lane): s[vector] += x[row, vector]          registers, some rows prefetched
      thread (row, lane): t[row, vector] = s[vector]           shared
      thread (column):    y[part, column] = sum of t[:, column]

A GEMV is such a reduction: its weights are read once.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from tilewright.arith.expr import as_int, product
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, Buffer, Iter
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
    divisors,
    own_loops,
    sum_at,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.sm_90a import OCCUPANCY
from tilewright.target.gpu import GpuTarget

# Vectors that a thread reads before it adds them.
PREFETCH_VECTORS = 8
# Threads along a row, and the fewest that read a cache line together.
LANES, MIN_LANES = 16, 8
# The most parts of a reduction, which one thread adds.
MAX_PARTS = 16


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
    """The plan of a reduction down columns, `None` if a block is none or is better off without."""
    axes = spatial(block)
    size = as_int(axes[-1].extent) if axes else None
    points, terms = _count(axes), _count(reductions(block))
    reads = [r for r in reads_of(block) if axes and uses(r, axes[-1].name)]
    near = all(flat_stride(r, buffers[r.buffer], axes[-1].name) == 1 for r in reads)
    if not size or not points or not terms or not reads or not near:
        return None
    width = gcd(target.lanes(max(r.dtype.bits for r in reads)), size)
    lanes = gcd(LANES, size // width)
    busy = target.sm_count * OCCUPANCY.column_reduction_blocks * lanes * width // points
    most = min(busy, terms // (2 * THREADS // lanes), MAX_PARTS)
    parts = gcd(terms, 1 << (most.bit_length() - 1)) if most > 1 else 1
    rows = gcd(terms // parts, THREADS // lanes)
    masked = any(r.mask is not None for r in reads_of(block))
    if masked or lanes < MIN_LANES or parts == 1 or 2 * rows * lanes < THREADS:
        return None
    return ColumnPlan(lanes, width, rows, gcd(terms // parts // rows, PREFETCH_VECTORS), parts)


def _count(axes: tuple[Iter, ...]) -> int | None:
    return as_int(simplify(product(tuple(it.extent for it in axes))))


def schedule_columns(sch: Schedule, name: str, plan: ColumnPlan) -> None:
    """Schedule a reduction over one loop, alone in its nest."""
    prefetch = sch.choose(f"{name}.prefetch", plan.prefetch, lambda: divisors(plan.prefetch))
    plan = replace(plan, prefetch=prefetch)
    block = block_graph(sch.func).block(name)
    depth = own_loops(sch, block)[len(spatial(block))]
    *_, row = sch.split(depth, [None, plan.prefetch, plan.rows])
    part = str(sch.rfactor(name, row))
    copy = str(sch.cache_write(part, "register"))
    shared = block_graph(sch.func).block(copy).writes[0].buffer
    out = str(sch.cache_write(name, "local"))
    *loops, last = [loop_of(it) for it in block_graph(sch.func).block(out).iters]
    last, column = sch.split(last, [None, plan.lanes * plan.width])
    grid = str(sch.fuse(*loops, last)) if loops else last
    sch.bind(grid, "grid")
    sch.bind(column, "thread")
    sum_at(sch, name, column)
    *rows, columns = sch.compute_at(copy, grid)
    lane, vector = sch.split(columns, [plan.lanes, plan.width])
    for loop in (sch.fuse(*rows) if len(rows) > 1 else rows[0], lane):
        sch.bind(loop, "thread")
    sch.vectorize(vector)
    sch.set_scope(shared, "shared")
    sum_at(sch, part, lane, plan.width)
    sch.unroll(loop_of(reductions(block_graph(sch.func).block(part))[-1]))
