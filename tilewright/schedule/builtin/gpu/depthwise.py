"""Windows that overlap, a sum for each point: what a thread reads serves several of its points.

    grid, thread: some points below each other
      s[points] = 0
      for q: x[rows] = ...                       registers: a column of all windows, once
             s[points] += x[point + r] * w[r, q]
      y[points] = f(s[points])

Neighbouring threads have neighbours of the last axis, which lie side by side; the points of one
thread are along another axis that windows slide along. Channels that lie innermost are such
neighbours, and a thread has 8 bytes of them.
"""

from __future__ import annotations

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Call, Expr, Load, Var, as_int, product
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, subexpressions
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_stride,
    in_groups,
    loop_of,
    reads_of,
    reductions,
    spatial,
    typical_extent,
    uses,
    value_of,
)
from tilewright.schedule.builtin.gpu.thread_per_element import bind_points, is_near
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Points of a thread at most, and their sums where each is one of several neighbours.
MOST_POINTS, MOST_SUMS = 14, 56
# What the windows of a thread have along the axis at most: all of that is in registers.
MOST_SPAN = 24
# How often each element that is read must be used at least.
LEAST_USES = 1.5
# What a thread reads at once of neighbours.
PIECE_BYTES = 8
# Terms of a sum of which all are spelt out, so that the next columns are read ahead.
MOST_SPELT = 64
# Threads for each multiprocessor below which more of them are better than more work for each.
BUSY_THREADS = 256


@node
class StencilPlan:
    """A thread has `points` along `axis`, and `lanes` neighbours of each; `along` is summed there.

    `buffer` is what the windows are of.
    """

    buffer: str
    axis: str
    along: str
    points: int
    lanes: int


def plan_stencil(graph: BlockGraph, name: str, target: GpuTarget) -> StencilPlan | None:
    """How threads go through the windows of a sum, `None` if those do not overlap or are few."""
    block, last = graph.block(name), graph.blocks[-1]
    axes = spatial(block)
    sizes = [as_int(it.extent) for it in (*axes, *reductions(block))]
    same = [str(it.extent) for it in axes] == [str(it.extent) for it in spatial(last)]
    if len(axes) < 2 or None in sizes or not same:
        return None
    slid = [x for x in reads_of(block) if uses(x, axes[-1].name)]
    if not slid:
        return None
    load = max(slid, key=lambda x: typical_extent(product(graph.buffers[x.buffer].shape)))
    if not is_near(load, graph.buffers[load.buffer], axes[-1].name):
        return None
    lanes = _lanes(graph, name)
    threads = typical_extent(product(tuple(it.extent for it in axes))) // lanes
    for axis in reversed(axes[:-1]):
        for points in range(min(MOST_POINTS, MOST_SUMS // lanes), 1, -1):
            along = _along(load, axis, points, reductions(block))
            busy = threads // points >= target.sm_count * BUSY_THREADS
            if along is not None and busy:
                return StencilPlan(load.buffer, axis.name, along, points, lanes)
    return None


def _along(load: Load, axis: Iter, points: int, sums: tuple[Iter, ...]) -> str | None:
    """The axis of a sum that runs along with so many neighbours of another, if windows overlap."""
    if (as_int(axis.extent) or 1) % points:
        return None
    moved = [i for i in load.indices if _step(i, axis, points) != 0]
    over = [it for it in sums if moved and it.name in free_vars(moved[0])]
    if len(moved) != 1 or len(over) != 1:
        return None
    step, inner = _step(moved[0], axis, points), stride_of(simplify(moved[0]), over[0].name)
    terms = as_int(over[0].extent) or 1
    alone = not any(over[0].name in free_vars(i) for i in load.indices if i is not moved[0])
    if step is None or inner is None or min(step, inner) < 1 or not alone:
        return None
    span = step * (points - 1) + inner * (terms - 1) + 1
    fits = span <= MOST_SPAN and terms * points >= LEAST_USES * span
    return over[0].name if fits else None


def _step(index: Expr, axis: Iter, points: int) -> int | None:
    """By how much an index grows along an axis, from the first to the last of some neighbours."""
    moved, extents = in_groups(index, axis, points)
    return stride_of(moved, list(extents)[-1])


def _lanes(graph: BlockGraph, name: str) -> int:
    """How many neighbours a thread has of each point: as many as 8 bytes are, if they are whole.

    Where windows slide along them, they are not.
    """
    size, lanes = 0, PIECE_BYTES
    for block in (graph.block(name), graph.blocks[-1]):
        axis, sums = spatial(block)[-1], {it.name for it in reductions(block)}
        size = as_int(axis.extent) or 1
        for load in (x for x in reads_of(block) if uses(x, axis.name)):
            slides = any(axis.name in free_vars(i) and sums & free_vars(i) for i in load.indices)
            if slides or flat_stride(load, graph.buffers[load.buffer], axis.name) != 1:
                return 1
            lanes = min(lanes, PIECE_BYTES // load.dtype.bytes)
    while size % lanes:
        lanes //= 2
    return lanes


def schedule_depthwise(sch: Schedule, name: str, plan: StencilPlan) -> None:
    """Schedule a sum, the one block behind it, and the one before it that only it reads."""
    graph = block_graph(sch.func)
    last = graph.blocks[-1]
    held = staged(graph, name, plan.buffer)
    copy = held.name if held is not None else str(sch.cache_read(name, plan.buffer, "register"))
    *loops, lane = [loop_of(it) for it in spatial(last)]
    position = [it.name for it in spatial(graph.block(name))].index(plan.axis)
    loops[position], point = sch.split(loops[position], [None, plan.points])
    inner = [point]
    if plan.lanes > 1:
        lane, piece = sch.split(lane, [None, plan.lanes])
        inner.append(piece)
        sch.vectorize(piece)
    sch.reorder(*loops, lane, *inner)
    sch.unroll(point)
    thread = bind_points(sch, [*loops, lane])
    _sum_windows(sch, name, thread, copy, plan)


def staged(graph: BlockGraph, name: str, buffer: str) -> Block | None:
    """The block that makes what windows are of, if nobody else wants that and it is cheap."""
    made = [b for b in graph.blocks if b.writes[0].buffer == buffer]
    if not made or reductions(made[0]) or buffer in graph.outputs:
        return None
    alone = [b.name for b in graph.consumers(buffer)] == [name]
    calls = any(isinstance(e, Call) for e in subexpressions(value_of(made[0])))
    return made[0] if alone and not calls else None


def _sum_windows(sch: Schedule, name: str, thread: str, copy: str, plan: StencilPlan) -> None:
    """Sum all windows of a thread, one column of them after another."""
    sch.compute_at(name, thread)
    block = block_graph(sch.func).block(name)
    sch.set_scope(block.writes[0].buffer, "register")
    loops = {it.name: loop_of(it) for it in block.iters if isinstance(it.binding, Var)}
    own = [loop.name for loop in loops_above(sch.func, name)]
    own = own[own.index(thread) + 1 :]
    sums = [loops[it.name] for it in reductions(block)]
    outer = [loop for loop in sums if loop != loops[plan.along]]
    points = [loop for loop in own if loop not in sums]
    pieces = points[-1:] if plan.lanes > 1 else []
    points = [loop for loop in points if loop not in pieces]
    sch.reorder(*outer, *points, loops[plan.along], *pieces)
    init = sch.decompose_reduction(name, (outer or points)[0])
    for loop in (*points, loops[plan.along]):
        sch.unroll(loop)
    for loop in pieces:
        sch.vectorize(loop)
    _unroll_all(sch, init, thread, plan.lanes)
    around = outer[-1] if outer else thread
    sch.compute_at(copy, around)
    sch.set_scope(block_graph(sch.func).block(copy).writes[0].buffer, "register")
    _unroll_all(sch, copy, around, plan.lanes)
    terms = simplify(product(tuple(it.extent for it in reductions(block))))
    if (as_int(terms) or MOST_SPELT + 1) <= MOST_SPELT:
        for loop in outer:
            sch.unroll(loop)


def _unroll_all(sch: Schedule, name: str, around: str, lanes: int) -> None:
    """Unroll the loops of a block in another; the last one of several lanes is vectors."""
    own = [loop.name for loop in loops_above(sch.func, name)]
    own = own[own.index(around) + 1 :]
    for loop in own if lanes == 1 else own[:-1]:
        sch.unroll(loop)
    if lanes > 1:
        sch.vectorize(own[-1])
