"""Functions that operators define as loops, and all that no other rule handles.

A nest of its own gets a thread for each element. Nests that share a loop stay in it: its iterations
are thread blocks if they are independent, else one block runs them all; the loops of each nest are
distributed over the threads of the block.
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.analysis.dataflow import has_independent_iterations
from tilewright.schedule.builtin.gpu.thread_per_element import (
    THREADS,
    leading_spatial,
    own_loops,
    schedule_points,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget


def schedule_opaque(sch: Schedule, target: GpuTarget) -> None:
    """Schedule every block where it stands."""
    for block in block_graph(sch.func).blocks:
        around = loops_above(sch.func, block.name)
        if len(own_loops(sch, block)) == len(around):
            schedule_points(sch, block, target)
        else:
            _bind_own(sch, block)
            if around[0].kind == "serial" and has_independent_iterations(around[0]):
                sch.bind(around[0].name, "grid")


def _bind_own(sch: Schedule, block: Block) -> None:
    loops = leading_spatial(sch, block)
    if loops:
        point = sch.fuse(*loops) if len(loops) > 1 else loops[0]
        part, thread = sch.split(point, [None, THREADS])
        sch.reorder(thread, part)  # a thread has all its elements between two barriers
        sch.bind(thread, "thread")
