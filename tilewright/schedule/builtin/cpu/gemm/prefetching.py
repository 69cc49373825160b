"""Prefetches of B where no near cache holds it.

The loads of A that wait for the same FMAs leave room for few of B: a tile of many rows reads a far
cache at two thirds of its bandwidth. A tile of few rows has enough loads under way. A B that is
read in place is prefetched for any tile: its rows are too short for the core's own prefetcher.
"""

from __future__ import annotations

from tilewright.ir.loop.annotations import PREFETCH
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel, MicrokernelProblem
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import LINE_BYTES, CpuTarget


def prefetch_steps(
    problem: MicrokernelProblem, tile: Microkernel, in_place: bool, target: CpuTarget
) -> int:
    """How many iterations over K before its use a row of a far B is prefetched; 0 if it is near."""
    size = problem.b_bytes if in_place else problem.constant_b_bytes
    lines = target.costs.loads_in_flight * tile.vectors / (tile.mr + tile.vectors)
    enough = not in_place and lines * LINE_BYTES >= target.costs.prefetch_bytes
    if size <= target.l2 // 2 or enough:
        return 0
    row = tile.nr * problem.bits // 8 * (tile.lanes if tile.lane_fma else 1)
    return max(1, target.costs.prefetch_bytes // row)


def prefetch_at(sch: Schedule, loop: str, steps: int) -> None:
    """Let the loop over K prefetch so many iterations ahead, if any."""
    if steps:
        sch.annotate(loop, PREFETCH.key, steps)
