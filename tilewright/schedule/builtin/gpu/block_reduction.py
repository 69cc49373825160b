"""Long sums along rows, each by a block of threads, piece by piece.

    grid: sums
      thread (lane): s = 0
      for step
        thread (lane): x[pieces]                     registers, 16 bytes at once, some ahead
        thread (lane): s += x[pieces]
      allreduce (lanes): y = sum of s

What is read is not kept: a sum may have any number of terms, and of axes.
"""

from __future__ import annotations

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
from tilewright.schedule.builtin.gpu.thread_per_element import THREADS, own_loops
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Pieces that a thread reads before it adds them.
AHEAD = 8


@node
class StreamPlan:
    """How many threads share a sum, and the elements of a piece and pieces of a step of each."""

    lanes: int
    width: int
    ahead: int


def plan_stream(block: Block, target: GpuTarget) -> StreamPlan | None:
    """The plan for a sum, `None` if its last axis does not fall into pieces for all threads."""
    if not reductions(block):
        return None
    axis = reductions(block)[-1]
    length = as_int(axis.extent)
    reads = [x for x in reads_of(block) if uses(x, axis.name)]
    if not length or not reads or not all(_is_along(x, axis.name) for x in reads):
        return None
    pieces, rest = divmod(length, target.lanes(min(x.dtype.bits for x in reads)))
    lanes = gcd(pieces, THREADS)
    if rest or lanes < target.warp_size or len({x.buffer for x in reads}) < len(reads):
        return None
    return StreamPlan(lanes, length // pieces, gcd(pieces // lanes, AHEAD))


def _is_along(load: Load, axis: str) -> bool:
    """Whether neighbours of an axis are neighbours in memory, and in one row of it."""
    *rest, last = load.indices
    return load.mask is None and last is Var(axis) and not any(axis in free_vars(e) for e in rest)


def schedule_stream(sch: Schedule, name: str, plan: StreamPlan) -> None:
    """Schedule a sum alone in its nest."""
    block = block_graph(sch.func).block(name)
    axis, count = reductions(block)[-1].name, len(spatial(block))
    out = str(sch.cache_write(name, "shared"))
    streamed = [x.buffer for x in reads_of(block) if uses(x, axis)]
    copies = [str(sch.cache_read(name, buffer, "register")) for buffer in streamed]
    *loops, last = [loop_of(it) for it in block_graph(sch.func).block(out).iters]
    last, one = sch.split(last, [None, 1])
    grid = str(sch.fuse(*loops, last)) if loops else str(last)
    own = list(sch.compute_at(name, grid))
    lane, step, inner = _deal_out(sch, own[-1], plan)
    steps = [*own[count:-1], step]
    sch.reorder(*steps, *own[:count], lane, *inner)
    partial = str(sch.rfactor(name, lane))
    sch.set_scope(block_graph(sch.func).block(partial).writes[0].buffer, "register")
    _bind_all(sch, [*own[:count], lane])
    init = sch.decompose_reduction(partial, steps[0])
    _bind_all(sch, own_loops(sch, block_graph(sch.func).block(init)))
    for loop in inner:
        sch.unroll(loop)
    for copy in copies:
        *ones, columns = sch.compute_at(copy, step)
        _copy(sch, ones, columns, plan)
    *numbering, left = own_loops(sch, block_graph(sch.func).block(name))
    sch.bind(left, "allreduce")
    _bind_all(sch, [*numbering, one])
    sch.bind(grid, "grid")


def _deal_out(sch: Schedule, columns: str, plan: StreamPlan) -> tuple[str, str, list[str]]:
    """The loops over threads, over steps, and over what a thread has of each step."""
    chunk, piece = sch.split(columns, [None, plan.width])
    step, part, lane = sch.split(chunk, [None, plan.ahead, plan.lanes])
    return lane, step, [part, piece]


def _copy(sch: Schedule, ones: list[str], columns: str, plan: StreamPlan) -> None:
    """What is read in a step, each element by the thread that adds it."""
    lane, step, (part, piece) = _deal_out(sch, columns, plan)
    sch.reorder(step, *ones, lane, part, piece)
    _bind_all(sch, [*ones, lane])
    sch.vectorize(piece)
    for loop in (step, part):
        sch.unroll(loop)


def _bind_all(sch: Schedule, loops: list[str]) -> None:
    for loop in loops:
        sch.bind(loop, "thread")
