"""Depthwise convolution and pooling: what a thread reads serves several of its outputs.

    grid, thread: some outputs below each other
      s[outputs] = 0
      for q: x[rows] = ...                       registers: a column of all windows, once
             s[outputs] += x[output + r] * w[r, q]
      y[outputs] = f(s[outputs])

Neighbouring threads have neighbours of the last axis, so that accesses are coalesced; the outputs
of one thread are along another axis that windows slide along. Where channels are innermost, a
thread has 8 bytes of them.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from tilewright.schedule.builtin.gpu.thread_per_element import bind_points, divisors, is_near
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.sm_90a import OCCUPANCY
from tilewright.target.gpu import GpuTarget

# The most outputs of a thread, and the most accumulators where each output has several channels.
MAX_OUTPUTS, MAX_ACCUMULATORS = 14, 56
# The longest input span of a thread along the axis, all in registers.
MAX_SPAN = 24
# How often each input element must be used at least.
MIN_USES = 1.5
# The bytes of channels that a thread reads at a time.
VECTOR_BYTES = 8
# The most taps that are unrolled, so that the loads of the next columns are hoisted.
MAX_UNROLLED_TAPS = 64


@node
class StencilPlan:
    """A thread has `outputs_per_thread` along `axis`, with `lanes` channels each.

    `tap_axis` is the axis of the window that slides along it, over the input `buffer`.
    """

    buffer: str
    axis: str
    tap_axis: str
    outputs_per_thread: int
    lanes: int

    @property
    def key(self) -> tuple[str, int, int]:
        """What distinguishes the plans of a stencil."""
        return self.axis, self.outputs_per_thread, self.lanes


def plan_stencil(graph: BlockGraph, name: str, target: GpuTarget) -> StencilPlan | None:
    """The plan of a stencil, `None` if its windows do not overlap or are few."""
    block = graph.block(name)
    points = typical_extent(product(tuple(it.extent for it in spatial(block))))
    for plan in stencil_plans(graph, name):
        threads = points // plan.lanes // plan.outputs_per_thread
        if threads >= target.sm_count * OCCUPANCY.stencil_threads:
            return plan
    return None


def choose_stencil(
    sch: Schedule, graph: BlockGraph, name: str, target: GpuTarget
) -> StencilPlan | None:
    """The plan by `plan_stencil`, or another of `stencil_plans`."""
    plan = plan_stencil(graph, name, target)
    if plan is None:
        return None

    def known() -> dict[tuple[str, int, int], StencilPlan]:
        return {p.key: p for n in divisors(plan.lanes) for p in stencil_plans(graph, name, n)}

    key = sch.choose(f"{name}.stencil", plan.key, known)
    return plan if key == plan.key else known()[key]


def stencil_plans(graph: BlockGraph, name: str, lanes: int | None = None) -> Iterator[StencilPlan]:
    """All plans of a stencil, with so many channels: those with most outputs of a thread first."""
    block, last = graph.block(name), graph.blocks[-1]
    axes = spatial(block)
    sizes = [as_int(it.extent) for it in (*axes, *reductions(block))]
    same = [str(it.extent) for it in axes] == [str(it.extent) for it in spatial(last)]
    if len(axes) < 2 or None in sizes or not same:
        return
    slid = [x for x in reads_of(block) if uses(x, axes[-1].name)]
    if not slid:
        return
    load = max(slid, key=lambda x: typical_extent(product(graph.buffers[x.buffer].shape)))
    if not is_near(load, graph.buffers[load.buffer], axes[-1].name):
        return
    lanes = lanes or _lanes(graph, name)
    for axis in reversed(axes[:-1]):
        for outputs in range(min(MAX_OUTPUTS, MAX_ACCUMULATORS // lanes), 1, -1):
            tap_axis = _tap_axis(load, axis, outputs, reductions(block))
            if tap_axis is not None:
                yield StencilPlan(load.buffer, axis.name, tap_axis, outputs, lanes)


def _tap_axis(load: Load, axis: Iter, outputs: int, sums: tuple[Iter, ...]) -> str | None:
    """The axis of the window that slides along an axis, if the windows of its outputs overlap."""
    if (as_int(axis.extent) or 1) % outputs:
        return None
    moved = [i for i in load.indices if _step(i, axis, outputs) != 0]
    over = [it for it in sums if moved and it.name in free_vars(moved[0])]
    if len(moved) != 1 or len(over) != 1:
        return None
    step, inner = _step(moved[0], axis, outputs), stride_of(simplify(moved[0]), over[0].name)
    terms = as_int(over[0].extent) or 1
    alone = not any(over[0].name in free_vars(i) for i in load.indices if i is not moved[0])
    if step is None or inner is None or min(step, inner) < 1 or not alone:
        return None
    span = step * (outputs - 1) + inner * (terms - 1) + 1
    fits = span <= MAX_SPAN and terms * outputs >= MIN_USES * span
    return over[0].name if fits else None


def _step(index: Expr, axis: Iter, outputs: int) -> int | None:
    """The stride of an index along an axis, within groups of so many outputs."""
    moved, extents = in_groups(index, axis, outputs)
    return stride_of(moved, list(extents)[-1])


def _lanes(graph: BlockGraph, name: str) -> int:
    """The channels of a thread: 8 bytes, if they divide all; 1 where windows slide along them."""
    size, lanes = 0, VECTOR_BYTES
    for block in (graph.block(name), graph.blocks[-1]):
        axis, sums = spatial(block)[-1], {it.name for it in reductions(block)}
        size = as_int(axis.extent) or 1
        for load in (x for x in reads_of(block) if uses(x, axis.name)):
            slides = any(axis.name in free_vars(i) and sums & free_vars(i) for i in load.indices)
            if slides or flat_stride(load, graph.buffers[load.buffer], axis.name) != 1:
                return 1
            lanes = min(lanes, VECTOR_BYTES // load.dtype.bytes)
    while size % lanes:
        lanes //= 2
    return lanes


def schedule_depthwise(sch: Schedule, name: str, plan: StencilPlan) -> None:
    """Schedule a stencil, its epilogue, and the producer that only it reads."""
    graph = block_graph(sch.func)
    last = graph.blocks[-1]
    held = staged(graph, name, plan.buffer)
    copy = held.name if held is not None else str(sch.cache_read(name, plan.buffer, "register"))
    *loops, lane = [loop_of(it) for it in spatial(last)]
    position = [it.name for it in spatial(graph.block(name))].index(plan.axis)
    loops[position], point = sch.split(loops[position], [None, plan.outputs_per_thread])
    inner = [point]
    if plan.lanes > 1:
        lane, vector = sch.split(lane, [None, plan.lanes])
        inner.append(vector)
        sch.vectorize(vector)
    sch.reorder(*loops, lane, *inner)
    sch.unroll(point)
    thread = bind_points(sch, [*loops, lane])
    _schedule_taps(sch, name, thread, copy, plan)


def staged(graph: BlockGraph, name: str, buffer: str) -> Block | None:
    """The producer of the input, if it has no other consumer and is cheap."""
    made = [b for b in graph.blocks if b.writes[0].buffer == buffer]
    if not made or reductions(made[0]) or buffer in graph.outputs:
        return None
    alone = [b.name for b in graph.consumers(buffer)] == [name]
    calls = any(isinstance(e, Call) for e in subexpressions(value_of(made[0])))
    return made[0] if alone and not calls else None


def _schedule_taps(sch: Schedule, name: str, thread: str, copy: str, plan: StencilPlan) -> None:
    """Accumulate all windows of a thread, one column of taps after another."""
    sch.compute_at(name, thread)
    block = block_graph(sch.func).block(name)
    sch.set_scope(block.writes[0].buffer, "register")
    loops = {it.name: loop_of(it) for it in block.iters if isinstance(it.binding, Var)}
    own = [loop.name for loop in loops_above(sch.func, name)]
    own = own[own.index(thread) + 1 :]
    sums = [loops[it.name] for it in reductions(block)]
    outer = [loop for loop in sums if loop != loops[plan.tap_axis]]
    points = [loop for loop in own if loop not in sums]
    vectors = points[-1:] if plan.lanes > 1 else []
    points = [loop for loop in points if loop not in vectors]
    sch.reorder(*outer, *points, loops[plan.tap_axis], *vectors)
    init = sch.decompose_reduction(name, (outer or points)[0])
    for loop in (*points, loops[plan.tap_axis]):
        sch.unroll(loop)
    for loop in vectors:
        sch.vectorize(loop)
    _unroll_all(sch, init, thread, plan.lanes)
    around = outer[-1] if outer else thread
    sch.compute_at(copy, around)
    sch.set_scope(block_graph(sch.func).block(copy).writes[0].buffer, "register")
    _unroll_all(sch, copy, around, plan.lanes)
    terms = simplify(product(tuple(it.extent for it in reductions(block))))
    if (as_int(terms) or MAX_UNROLLED_TAPS + 1) <= MAX_UNROLLED_TAPS:
        for loop in outer:
            sch.unroll(loop)


def _unroll_all(sch: Schedule, name: str, around: str, lanes: int) -> None:
    """Unroll the loops of a block in another; with several lanes the last one is vectorized."""
    own = [loop.name for loop in loops_above(sch.func, name)]
    own = own[own.index(around) + 1 :]
    for loop in own if lanes == 1 else own[:-1]:
        sch.unroll(loop)
    if lanes > 1:
        sch.vectorize(own[-1])
