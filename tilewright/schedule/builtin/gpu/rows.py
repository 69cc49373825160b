"""Row-wise kernels: softmax, norms, sums along the last axis, in one pass over each row.

A block of threads has one row, or several short ones; what is computed for a row stays in shared
memory from the first stage to the last, if there is room.

    grid: rows
      thread (row, lane): peak.rf[lane] = max over the row in steps of all lanes, in a register
      thread (row, few):  peak.rf2[few] = max over some lanes
      thread (row):       peak = max over the few
      thread (row, lane): e[j] = exp(x[j] - peak)
      ...
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.schedule.builtin.gpu.points import own_loops
from tilewright.schedule.builtin.structure import (
    Facts,
    facts_of,
    loop_of,
    reductions,
    spatial,
    typical_extent,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Threads of a block at most; and those that rows shorter than these share.
MOST_LANES = 256
# Elements of a row for each thread that are worth it.
ELEMENTS = 4
# Partial results that one thread combines.
FEW = 8
# Rows shorter than this are summed by one thread each.
SHORT = 16


def is_short(facts: Facts) -> bool:
    """Whether rows are too short to be shared by threads."""
    sums = [b for b in facts.blocks if reductions(b)]
    return all(_length(b, len(spatial(b))) < SHORT for b in sums)


def schedule_rows(sch: Schedule, facts: Facts, rows: int, target: GpuTarget) -> None:
    """Schedule all blocks row by row."""
    if reductions(facts.blocks[-1]):
        sch.cache_write(facts.blocks[-1].name, "shared")
        facts = facts_of(sch.func)
    last = facts.blocks[-1]
    lanes = _lanes(facts, rows, target)
    several = max(1, MOST_LANES // 2 // lanes) if rows == 1 else 1
    loops = [loop_of(it) for it in spatial(last)[:rows]]
    if loops:
        row = sch.fuse(*loops) if rows > 1 else loops[0]
        outer, _ = sch.split(row, [None, several])
        for b in reversed(facts.blocks[:-1]):
            sch.compute_at(b.name, outer)
    else:
        outer = sch.enclose()
    sch.bind(outer, "grid")
    for b in facts.blocks:
        count = min(rows, 1) if b is last else rows
        if reductions(b):
            _sum_rows(sch, b.name, count, lanes)
        else:
            _map_rows(sch, b.name, count, lanes)


def _lanes(facts: Facts, rows: int, target: GpuTarget) -> int:
    """The threads that share a row: a power of two, whole warps unless rows are very short."""
    longest = max(_length(b, rows) for b in facts.blocks)
    wanted = 1 << max(0, (-(-longest // ELEMENTS) - 1).bit_length())
    return max(target.warp, min(MOST_LANES, wanted))


def _length(block: Block, rows: int) -> int:
    """The elements of a row that a block goes through."""
    total = 1
    for it in reductions(block) or spatial(block)[rows:]:
        total *= typical_extent(it.extent)
    return total


def _map_rows(sch: Schedule, name: str, rows: int, lanes: int) -> None:
    """Deal out the elements of each row; the first `rows` loops of a block number rows."""
    own = own_loops(sch, facts_of(sch.func).block(name))
    columns = own[rows:]
    if columns:
        column = sch.fuse(*columns) if len(columns) > 1 else columns[0]
        part, lane = sch.split(column, [None, lanes])
        sch.reorder(lane, part)  # a thread has all its elements between two barriers
        sch.bind(lane, "thread")
    _bind_all(sch, own[:rows])


def _sum_rows(sch: Schedule, name: str, rows: int, lanes: int) -> None:
    """Partial sums, one a thread; then the partial sums in groups, then the groups."""
    own = own_loops(sch, facts_of(sch.func).block(name))
    along, numbering = own[rows:], own[:rows]
    depth = sch.fuse(*along) if len(along) > 1 else along[0]
    count = lanes
    while count > 1:
        numbering, depth = _sum_in_part(sch, name, numbering, depth, count)
        count = count // FEW if count > FEW else 1
    sch.decompose_reduction(name, depth)
    _bind_all(sch, numbering)


def _sum_in_part(
    sch: Schedule, name: str, rows: list[str], depth: str, count: int
) -> tuple[list[str], str]:
    """Sum into `count` partial results, each in a thread's register until it is finished.

    Gives the loops over the rows and over the partial results that are left to sum.
    """
    steps, lane = sch.split(depth, [None, count])
    partial = sch.rfactor(name, lane)
    buffer = facts_of(sch.func).block(partial).writes[0].buffer
    copy = sch.cache_write(partial, "local")
    sch.set_scope(buffer, "shared")
    sch.bind(lane, "thread")
    facts = facts_of(sch.func)
    if facts.block(partial).init is not None:
        sch.decompose_reduction(partial, steps)
    elif f"{partial}.init" in {b.name for b in facts.blocks}:
        sch.bind(own_loops(sch, facts.block(f"{partial}.init"))[-1], "thread")
    _bind_all(sch, rows)
    part, *numbers = own_loops(sch, facts_of(sch.func).block(copy))
    if numbers:
        sch.reorder(*numbers, part)
    _bind_all(sch, [*numbers, part])
    *numbering, left = own_loops(sch, facts_of(sch.func).block(name))
    return numbering, left


def _bind_all(sch: Schedule, loops: list[str]) -> None:
    for loop in loops:
        sch.bind(loop, "thread")
