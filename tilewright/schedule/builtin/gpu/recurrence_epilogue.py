"""The formulas behind the sums of a step: one thread for each row and unit does them all.

thread (row, unit): ahead = inputs[t, row, gates, unit]        before the sums are there
...
thread (row, unit): cell = f(sums, ahead)
                    state = g(cell, sums, ahead)
"""

from __future__ import annotations

from tilewright.arith.expr import Load, Var
from tilewright.arith.walk import loads
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import BlockGraph, block_graph, reads_of, spatial
from tilewright.schedule.schedule import Schedule

# Where what is read ahead waits: once for a buffer, the formulas of another sum read it in time.
SCOPE = "register"


def place_formulas(sch: Schedule, formulas: list[Block], grid: str) -> None:
    """Compute formulas for what a block of threads has summed.

    One that needs what another has computed is done by the same thread.
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


def read_ahead(sch: Schedule, formulas: list[Block], grid: str) -> None:
    """Read what formulas are given of each row and unit by a nest of its own, into registers."""
    graph = block_graph(sch.func)
    changed = {r.buffer for b in graph.blocks for r in b.writes}
    given = {x.buffer for f in formulas for x in reads_of(f)} - changed
    for buffer in sorted(n for n in given if f"{n}.{SCOPE}" not in graph.buffers):
        places = {_places(x, f) for f in formulas for x in reads_of(f) if x.buffer == buffer}
        if len(places) == 1 and None not in places:
            (place,) = places
            assert place is not None
            _hold(sch, formulas, buffer, place, grid)


def _places(load: Load, formula: Block) -> tuple[int, int] | None:
    """The dimensions that row and unit number, in this order; `None` if nothing can be told."""
    _, row, unit = (Var(it.name) for it in spatial(formula))
    indices = list(load.indices)
    if load.mask is not None or any(any(loads(i)) for i in indices):
        return None
    if row not in indices or unit not in indices:
        return None
    found = indices.index(row), indices.index(unit)
    return found if found[0] < found[1] else None


def _hold(
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
