"""The order of attention's tiles under a band, where some rows see more keys than others.

    for batch                            for group of batches
      for rows: the last ones first  →     for rows: the last ones first
                                             for batch of the group

A persistent block gets one tile a turn, by turns from the first block on and from the last
(`finalize/gpu/roles.py`). How much that is for each block depends on how many tiles of one length
follow each other: 64 batches of 32 tiles in groups of eight give the last of 132 blocks 1.6 times
what it is on average, in groups of two 1.03 times.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, substitute
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.walk import find_loop
from tilewright.schedule.builtin.gpu.thread_per_element import divisors
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# What is around the steps of a tile, as so many more of them.
AROUND_STEPS = 2
# With more tiles than this any order is even.
MAX_TILES = 20_000


def longest_first(sch: Schedule, outer: list[str], mainloop: For, target: GpuTarget) -> list[str]:
    """The loops over tiles in this order: groups of batches, rows, the batches of a group."""
    *batches, rows = outer
    if not batches or rows not in free_vars(mainloop.extent):
        return outer
    batch = sch.fuse(*batches) if len(batches) > 1 else batches[0]
    count = as_int(find_loop(sch.func, batch).extent)
    sizes = [as_int(p.dtype.bytes * product(p.shape)) for p in sch.func.params[1:3]]
    if count is None or None in sizes:
        return [batch, rows]
    most = max(1, target.l2 // 2 * count // sum(filter(None, sizes)))
    fitting = [n for n in divisors(count) if n <= most]
    steps = _steps(sch, rows, mainloop)
    default = _evenest(fitting, steps, count, target.sm_count)
    together = sch.choose("batches", default, lambda: fitting)
    group, within = sch.split(batch, [None, together])
    sch.reorder(rows, within)
    return [group, rows, within]


def _steps(sch: Schedule, rows: str, mainloop: For) -> list[int]:
    """The steps of each tile of rows, in order; none where they are known at run time only."""
    count = as_int(find_loop(sch.func, rows).extent) or 0
    found = [as_int(simplify(substitute(mainloop.extent, {rows: const(n)}))) for n in range(count)]
    return [] if None in found else [n for n in found if n is not None]


def _evenest(fitting: Sequence[int], steps: Sequence[int], batches: int, blocks: int) -> int:
    """The batches of a group that give the busiest block least; of many tiles, most batches."""
    if not steps or batches * len(steps) > MAX_TILES:
        return max(fitting)
    return min(fitting, key=lambda n: (busiest(steps, n, batches // n, blocks), -n))


def busiest(steps: Sequence[int], together: int, groups: int, blocks: int) -> int:
    """The steps of the busiest block, where groups of so many batches follow each other."""
    tiles = [n + AROUND_STEPS for n in steps for _ in range(together)] * groups
    loads = [0] * min(blocks, len(tiles))
    for number, length in enumerate(tiles):
        turn, place = divmod(number, len(loads))
        loads[place if turn % 2 == 0 else -1 - place] += length
    return max(loads)
