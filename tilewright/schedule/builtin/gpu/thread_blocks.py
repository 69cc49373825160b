"""Functions whose blocks are thread blocks: they spell out what each thread does.

for b in serial(N) {                                     grid
  block "scan" [v: S(N) = b] { for lane in thread(32) { ... } ... }
}
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.thread_mapping import threads_of
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.schedule import Schedule


def has_thread_blocks(func: Func) -> bool:
    """Whether every block of a function, not yet scheduled, is for the threads of a block."""
    return all(threads_of(block.body) > 1 for block in block_graph(func).blocks)


def schedule_thread_blocks(sch: Schedule) -> None:
    """Each iteration of the loops around a block is a thread block."""
    for block in block_graph(sch.func).blocks:
        loops = [loop.name for loop in loops_above(sch.func, block.name)]
        sch.bind(str(sch.fuse(*loops)) if len(loops) > 1 else loops[0], "grid")
