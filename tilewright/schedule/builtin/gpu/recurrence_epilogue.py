"""The epilogue of a step: one thread for each row and unit computes all gates.

thread (row, unit): x = inputs[t, row, gates, unit]        prefetched before the sums
...
thread (row, unit): cell = f(sums, x)
                    state = g(cell, sums, x)
"""

from __future__ import annotations

from tilewright.arith.expr import Load, Var
from tilewright.arith.walk import loads
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import BlockGraph, block_graph, reads_of, spatial
from tilewright.schedule.schedule import Schedule

# The scope of prefetched inputs; each buffer is prefetched once.
SCOPE = "register"


def place_epilogue(sch: Schedule, formulas: list[Block], grid: str) -> None:
    """Compute the blocks of an epilogue for the sums of a thread block.

    A block that reads what another computes runs in the same thread.
    """
    written: set[str] = set()
    inner = grid
    for formula in formulas:
        needed = {r.buffer for r in formula.reads} & written
        loops = sch.reverse_compute_at(formula.name, inner if needed else grid)
        if needed:
            written |= {r.buffer for r in formula.writes}
            continue
        for loop in loops:
            sch.bind(loop, "thread")
        inner = str(loops[-1])
        written = {r.buffer for r in formula.writes}


def prefetch_inputs(sch: Schedule, formulas: list[Block], grid: str) -> None:
    """Read the inputs of an epilogue to registers, in a nest of their own."""
    graph = block_graph(sch.func)
    changed = {r.buffer for b in graph.blocks for r in b.writes}
    given = {x.buffer for f in formulas for x in reads_of(f)} - changed
    for buffer in sorted(n for n in given if f"{n}.{SCOPE}" not in graph.buffers):
        places = {_row_and_unit(x, f) for f in formulas for x in reads_of(f) if x.buffer == buffer}
        if len(places) == 1 and None not in places:
            (place,) = places
            assert place is not None
            _prefetch(sch, formulas, buffer, place, grid)


def _row_and_unit(load: Load, formula: Block) -> tuple[int, int] | None:
    """The dimensions indexed by row and unit, in this order; `None` if there are none."""
    _, row, unit = (Var(it.name) for it in spatial(formula))
    indices = list(load.indices)
    if load.mask is not None or any(any(loads(i)) for i in indices):
        return None
    if row not in indices or unit not in indices:
        return None
    found = indices.index(row), indices.index(unit)
    return found if found[0] < found[1] else None


def _prefetch(
    sch: Schedule, formulas: list[Block], buffer: str, place: tuple[int, int], grid: str
) -> None:
    graph: BlockGraph = block_graph(sch.func)
    readers = [f.name for f in formulas if buffer in {r.buffer for r in graph.block(f.name).reads}]
    copies = [sch.cache_read(name, buffer, SCOPE) for name in readers]
    axes = sch.compute_at(copies[0], grid)
    threads = [axes[n] for n in place]
    rest = [axis for axis in axes if axis not in threads]
    sch.reorder(*threads, *rest)
    for loop in threads:
        sch.bind(loop, "thread")
    for loop in rest:
        sch.unroll(loop)
