"""Long reductions along rows, one for each thread block.

    grid: rows
      thread (lane): s = 0
      for step
        thread (lane): x[vectors]                    registers, 16 bytes each, prefetched
        thread (lane): s += x[vectors]
      allreduce (lanes): y = sum of s

Elements are read once and not kept: a reduction may have any length, and any number of axes.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from tilewright.arith.expr import Load, Var, as_int
from tilewright.arith.walk import free_vars
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    block_graph,
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
from tilewright.target.gpu import GpuTarget

# Vectors that a thread reads before it adds them.
PREFETCH_VECTORS = 8


@node
class BlockReductionPlan:
    """The threads of a reduction, the elements of a vector, and the vectors of a step of each."""

    lanes: int
    width: int
    prefetch: int


def plan_block_reduction(block: Block, target: GpuTarget) -> BlockReductionPlan | None:
    """The plan for a reduction, `None` if its last axis is no multiple of vectors for all lanes."""
    if not reductions(block):
        return None
    axis = reductions(block)[-1]
    length = as_int(axis.extent)
    reads = [x for x in reads_of(block) if uses(x, axis.name)]
    if not length or not reads or not all(_is_along(x, axis.name) for x in reads):
        return None
    vectors, rest = divmod(length, target.lanes(min(x.dtype.bits for x in reads)))
    lanes = gcd(vectors, THREADS)
    if rest or lanes < target.warp_size or len({x.buffer for x in reads}) < len(reads):
        return None
    return BlockReductionPlan(lanes, length // vectors, gcd(vectors // lanes, PREFETCH_VECTORS))


def _is_along(load: Load, axis: str) -> bool:
    """Whether neighbours of an axis are neighbours in memory, and in one row of it."""
    *rest, last = load.indices
    return load.mask is None and last is Var(axis) and not any(axis in free_vars(e) for e in rest)


def schedule_block_reduction(sch: Schedule, name: str, plan: BlockReductionPlan) -> None:
    """Schedule a reduction alone in its nest."""
    prefetch = sch.choose(f"{name}.prefetch", plan.prefetch, lambda: divisors(plan.prefetch))
    plan = replace(plan, prefetch=prefetch)
    block = block_graph(sch.func).block(name)
    axis, count = reductions(block)[-1].name, len(spatial(block))
    out = str(sch.cache_write(name, "shared"))
    reads_along = [x.buffer for x in reads_of(block) if uses(x, axis)]
    copies = [str(sch.cache_read(name, buffer, "register")) for buffer in reads_along]
    *loops, last = [loop_of(it) for it in block_graph(sch.func).block(out).iters]
    last, one = sch.split(last, [None, 1])
    grid = str(sch.fuse(*loops, last)) if loops else str(last)
    own = list(sch.compute_at(name, grid))
    lane, step, inner = _distribute(sch, own[-1], plan)
    steps = [*own[count:-1], step]
    sch.reorder(*steps, *own[:count], lane, *inner)
    partial = str(sch.rfactor(name, lane))
    sch.set_scope(block_graph(sch.func).block(partial).writes[0].buffer, "register")
    bind_threads(sch, [*own[:count], lane])
    init = sch.decompose_reduction(partial, steps[0])
    bind_threads(sch, own_loops(sch, block_graph(sch.func).block(init)))
    for loop in inner:
        sch.unroll(loop)
    for copy in copies:
        *ones, columns = sch.compute_at(copy, step)
        _copy(sch, ones, columns, plan)
    *numbering, left = own_loops(sch, block_graph(sch.func).block(name))
    sch.bind(left, "allreduce")
    bind_threads(sch, [*numbering, one])
    sch.bind(grid, "grid")


def _distribute(
    sch: Schedule, columns: str, plan: BlockReductionPlan
) -> tuple[str, str, list[str]]:
    """The loops over threads, over steps, and over what a thread has of each step."""
    chunk, vector = sch.split(columns, [None, plan.width])
    step, part, lane = sch.split(chunk, [None, plan.prefetch, plan.lanes])
    return lane, step, [part, vector]


def _copy(sch: Schedule, ones: list[str], columns: str, plan: BlockReductionPlan) -> None:
    """Read a step to registers, each element by the thread that adds it."""
    lane, step, (part, vector) = _distribute(sch, columns, plan)
    sch.reorder(step, *ones, lane, part, vector)
    bind_threads(sch, [*ones, lane])
    sch.vectorize(vector)
    for loop in (step, part):
        sch.unroll(loop)
