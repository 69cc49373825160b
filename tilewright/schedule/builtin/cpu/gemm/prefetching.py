"""Prefetches of operands where no near cache holds them.

The loads of A that wait for the same FMAs leave room for few of B: a tile of many rows reads a far
cache at two thirds of its bandwidth. A tile of few rows has enough loads under way. A B that is
read in place is prefetched for any tile: its rows are too short for the core's own prefetcher.
So are short rows of A that are used once, by the only panel.
"""

from __future__ import annotations

from tilewright.ir.loop.annotations import PREFETCH, PREFETCH_ROWS
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel, MicrokernelProblem
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import LINE_BYTES, CpuTarget

# Row tiles that all prefetch a B of which only the first needs it.
MAX_PREFETCHING = 4


def prefetch_steps(
    problem: MicrokernelProblem, tile: Microkernel, in_place: bool, target: CpuTarget
) -> int:
    """How many iterations over K before its use a row of a far B is prefetched; 0 if it is near."""
    if in_place and problem.m > MAX_PREFETCHING * tile.mr:
        return 0  # most tiles find it in L1
    size = problem.b_bytes if in_place else problem.constant_b_bytes
    lines = target.costs.loads_in_flight * tile.vectors / (tile.mr + tile.vectors)
    enough = not in_place and lines * LINE_BYTES >= target.costs.prefetch_bytes
    if size <= target.l2 // 2 or enough:
        return 0
    row = tile.nr * problem.bits // 8 * (tile.lanes if tile.lane_fma else 1)
    return max(1, target.costs.prefetch_bytes // row)


def prefetches_rows(problem: MicrokernelProblem, tile: Microkernel, target: CpuTarget) -> bool:
    """Whether a tile prefetches the rows of the next one: they follow its own in memory.

    Half of L1 has room for them. Longer rows are streams that the core's own prefetcher follows.
    """
    row = problem.k * problem.bits // 8
    size = row * problem.m * max(1, problem.batch)
    once = problem.reuses_b and problem.n <= tile.nr and not tile.lane_fma
    packed = once and problem.row_bytes == row and tile.mr > 1
    return packed and size > target.l2 // 2 and tile.mr * row <= target.l1 // 2


def prefetch_at(sch: Schedule, loop: str, steps: int, rows: bool = False) -> None:
    """Let the loop over K prefetch so many iterations ahead, if any, and the next tile's `rows`."""
    if steps:
        sch.annotate(loop, PREFETCH.key, steps)
    if rows:
        sch.annotate(loop, PREFETCH_ROWS.key, 1)
