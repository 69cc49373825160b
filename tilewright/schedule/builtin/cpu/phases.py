"""Nests that read by the remainder of an axis, as `col2im` does: one phase after the other.

    for x: y[x] = a[x % 2, x // 2]

    for x.0                                          y[ramp(x.0 * 32, 2, 16)] = a[0, ...]
      for phase in unroll(2)                   →     y[ramp(x.0 * 32 + 1, 2, 16)] = a[1, ...]
        for lane in vectorize(16)
          x = x.0 * 32 + lane * 2 + phase

Neighbours are far from each other in memory, but the elements of a phase are next to each other:
its loads are whole vectors, and conditions on the phase are known. `interleave_stores` makes whole
vectors of the stores.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.arith.affine import stride_of, to_affine
from tilewright.arith.expr import Binary, Load, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, subexpressions, substitute
from tilewright.ir.loop.annotations import PARTITION
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    flat_index,
    loop_of,
    reads_of,
    spatial,
    value_of,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# Phases of the last axis, as many as stores can be interleaved; and of all axes together.
MAX_PHASES = 4
MAX_COPIES = 16


def last_axis_phases(block: Block, graph: BlockGraph) -> int:
    """How many phases the last axis has, each of contiguous elements in all that is read; or 1."""
    last = spatial(block)[-1]
    count = _phases(block, last)
    if not 1 < count <= MAX_PHASES:
        return 1
    return count if all(_is_contiguous(r, graph, last, count) for r in reads_of(block)) else 1


def _phases(block: Block, axis: Iter) -> int:
    """The number by which remainders of an axis are formed; 1 if there is none, or several."""
    found = set(_divisors(block, axis))
    return found.pop() if len(found) == 1 else 1


def _divisors(block: Block, axis: Iter) -> Iterator[int]:
    for e in subexpressions(value_of(block)):
        if isinstance(e, Binary) and e.op == "mod" and axis.name in free_vars(e.a):
            shifted = to_affine(e.a).coeffs == {Var(axis.name): 1}
            yield as_int(e.b) or 1 if shifted else 1


def _is_contiguous(load: Load, graph: BlockGraph, axis: Iter, count: int) -> bool:
    """Whether the elements of each phase lie next to each other, or are one and the same."""
    index, place = flat_index(load, graph.buffers[load.buffer]), Var(axis.name)
    phases = (substitute(index, {axis.name: place * count + n}) for n in range(count))
    return all(stride_of(simplify(phase), axis.name) in (0, 1) for phase in phases)


def schedule_phases(sch: Schedule, block: Block, phases: int, target: CpuTarget) -> list[str]:
    """Vectors of the phases of the last axis; the loops that may run in parallel.

    The phases of other axes are unrolled as well, as far as the code stays short.
    """
    *outer, last = spatial(block)
    lanes = target.lanes(value_of(block).dtype.bits)
    vector, lane, phase = sch.split(loop_of(last), [None, lanes, phases])
    loops, copies, total = [], [phase], phases
    for it in outer:
        count = _phases(block, it)
        loop = loop_of(it)
        if 1 < count and total * count <= MAX_COPIES:
            loop, copy = sch.split(loop, [None, count])
            sch.annotate(loop, PARTITION.key, 1)
            copies.insert(-1, copy)
            total *= count
        loops.append(loop)
    sch.reorder(*loops, vector, *copies, lane)
    for copy in copies:
        sch.unroll(copy)
    sch.vectorize(lane)
    return loops or [vector]
