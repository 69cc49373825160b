"""Reductions along a row: one partial result for each SIMD lane, combined in halves.

    s.rf[16] += x[k * 16 : 16]            for k: independent chains hide the latency of an addition
    s.rf2[8] += s.rf[k * 8 : 8]           2 halves, of which the first starts
    s.rf3[4] += s.rf2[k * 4 : 4]
    ...

A scalar chain through all lanes would take longer than a short row itself.
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import block_graph, loop_of, reductions
from tilewright.schedule.schedule import Schedule

# So few partial results are combined by scalars.
MAX_SCALAR_PARTIALS = 2


def reduce_in_lanes(sch: Schedule, name: str, axis: str, factor: int, lanes: int) -> None:
    """Reduce over `axis` in `factor` lanes, whole vectors of them; 0 is one after the other.

    The loops around the reduction must be those of its row.
    """
    if factor:
        _, inner = sch.split(_loop_over(sch, name, axis), [None, factor])
        partial = sch.rfactor(name, inner)
        sch.vectorize(inner)
        _start_lanes(sch, partial)
    combine_lanes(sch, name, factor, lanes)


def combine_lanes(sch: Schedule, name: str, count: int, lanes: int) -> None:
    """Combine `count` partial results that a reduction reads: vectors, then halves of one."""
    while count > MAX_SCALAR_PARTIALS:
        width = lanes if count > lanes else count // 2
        _, inner = sch.split(_reduction_loops(sch, name)[-1], [None, width])
        partial = sch.rfactor(name, inner, own_start=True)
        sch.vectorize(inner)
        _start_lanes(sch, partial)
        for loop in _reduction_loops(sch, partial):
            sch.unroll(loop)
        count = width
    final = _reduction_loops(sch, name)
    sch.decompose_reduction(name, final[0])
    if count:
        sch.unroll(final[0])


def _start_lanes(sch: Schedule, partial: str) -> None:
    """Start all lanes at once; a guarded reduction has a block for that already."""
    graph = block_graph(sch.func)
    if graph.block(partial).init is not None:
        sch.decompose_reduction(partial, _reduction_loops(sch, partial)[0])
    elif f"{partial}.init" in {b.name for b in graph.blocks}:
        sch.vectorize(loops_above(sch.func, f"{partial}.init")[-1].name)


def _reduction_loops(sch: Schedule, block: str) -> list[str]:
    """The loops that a block reduces over, outermost first."""
    found = block_graph(sch.func).block(block)
    reduced = {loop_of(it) for it in reductions(found)}
    return [loop.name for loop in loops_above(sch.func, found) if loop.name in reduced]


def _loop_over(sch: Schedule, name: str, axis: str) -> str:
    """The loop that an axis runs over, inside the row loop."""
    block: Block = block_graph(sch.func).block(name)
    return loop_of(next(it for it in block.iters if it.name == axis))
