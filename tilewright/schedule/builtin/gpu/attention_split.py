"""The second launch of split-KV: a thread combines the parts of a few columns.

grid, thread: row, group of columns
  for p in unrolled(3): peak = max(peak, parts.m[p])
  for p in unrolled(3): whole += parts.l[p] * exp2(parts.m[p] - peak)
  for p in unrolled(3): mix[vector(4)] += parts.o[p, vector(4)] * exp2(parts.m[p] - peak)
  y[vector(4)] = mix / whole
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import block_graph, loop_of, reductions
from tilewright.schedule.builtin.gpu.thread_per_element import bind_points, own_loops
from tilewright.schedule.schedule import Schedule

# The threads of a block.
COMBINE_THREADS = 128


def combine_splits(sch: Schedule, behind: list[Block]) -> None:
    """Schedule the nests that combine partial results."""
    own = own_loops(sch, behind[0])
    points = [loop.name for loop in loops_above(sch.func, behind[0].name) if loop.name not in own]
    for block in behind:
        parts = [loop_of(it) for it in reductions(block)]
        columns = [loop for loop in own_loops(sch, block) if loop not in parts]
        for part in parts:
            init = sch.decompose_reduction(block.name, part)
            sch.unroll(part)
            columns += own_loops(sch, block_graph(sch.func).block(init))
        for column in columns:
            sch.vectorize(column)
    bind_points(sch, points, COMBINE_THREADS)
