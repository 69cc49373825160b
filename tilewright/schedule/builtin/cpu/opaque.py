"""Functions that operators give as loops (sorting, scans, scatters): rows in parallel.

Copies get vectors like any other nest; a block with code of its own runs that for many rows at once
if its outermost loop numbers independent iterations.
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, Var, as_int
from tilewright.ir.loop.nodes import Block, For
from tilewright.ir.loop.walk import loops, loops_above
from tilewright.schedule.analysis.blocks import UNKNOWN_WORK, BlockGraph, is_copy, spatial
from tilewright.schedule.builtin.cpu.injective import schedule_injective
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget


def schedule_opaque(sch: Schedule, graph: BlockGraph, target: CpuTarget) -> None:
    """Schedule every block for itself."""
    for block in graph.blocks:
        if is_copy(block):
            schedule_injective(sch, block, target)
        else:
            _parallel_rows(sch, block)


def _parallel_rows(sch: Schedule, block: Block) -> None:
    around = loops_above(sch.func, block)
    rows = {it.binding for it in spatial(block)}
    independent = [loop for loop in around if Var(loop.name) in rows]
    single = all(as_int(loop.extent) == 1 for loop in around)
    if single or independent != list(around):
        return
    if is_parallel(sch, block.name, _work(around, block)):
        fuse_parallel(sch, block.name, [loop.name for loop in around])


def _work(around: tuple[For, ...], block: Block) -> int:
    """How many times the innermost statement may run."""
    total = 1
    for loop in (*around, *loops(block.body)):
        total *= _extent(loop.extent)
    return total


def _extent(extent: Expr) -> int:
    known = as_int(extent)
    return UNKNOWN_WORK if known is None else known
