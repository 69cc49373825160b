"""The epilogue of a tile: blocks that read its accumulators, computed as soon as it is finished.

for tiles
  C = ...                                              registers
  for rows of the tile                                 unrolled
    for vectors of a row: out[row, vector] = f(C[row, vector])

Registers have no index: rows that read them are unrolled. Where `f` takes tens of instructions for
a vector, such as GELU, the tile goes through memory first, and one copy of the code serves all
rows. That costs a store and a load for each vector, and saves most of the time of compiling. It is
a function of its own, or its constants would take registers from the accumulators.
"""

from __future__ import annotations

from tilewright.arith.expr import Call, as_int
from tilewright.arith.operators import SHORT_CALLS
from tilewright.arith.walk import subexpressions
from tilewright.ir.loop.annotations import OUTLINED
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import value_of
from tilewright.schedule.schedule import Schedule

# Longer loops are never unrolled: no register tile has as many rows or vectors.
MAX_UNROLL = 64
# Vectors of a row that hide the latency of a long epilogue; of fewer, unrolled rows must do that.
MIN_VECTORS = 3
# Steps of K beside which the way through memory costs nothing.
MIN_STEPS = 128


def fuse_epilogue(
    sch: Schedule, block: str, at: str, lanes: int, unroll_rows: bool = True
) -> list[str]:
    """Compute a block on each tile that the loop `at` finishes, in vectors; its loops over rows."""
    *rows, column = sch.reverse_compute_at(block, at)
    vector, lane = sch.split(column, [None, lanes])
    extents = {f.name: as_int(f.extent) for f in loops_above(sch.func, block)}
    for loop in (*(rows if unroll_rows else ()), vector):
        # An epilogue over an axis that was reduced runs for longer than a tile.
        if 0 < (extents[loop] or 0) <= MAX_UNROLL:
            sch.unroll(loop)
    sch.vectorize(lane)
    return [str(loop) for loop in rows]


def fuse_through_memory(
    sch: Schedule, block: str, accumulators: str, at: str, lanes: int
) -> list[str]:
    """Fuse an epilogue that reads a copy of the tile; the loops over rows of it and of the copy."""
    stored = fuse_epilogue(sch, sch.cache_read(block, accumulators, "local"), at, lanes)
    rows = fuse_epilogue(sch, block, at, lanes, unroll_rows=False)
    sch.annotate(rows[0], OUTLINED.key, 1)
    return [*stored, *rows]


def goes_through_memory(epilogue: Block, vectors: int, steps: int) -> bool:
    """Whether one loop over rows serves an epilogue as well as unrolled rows do."""
    if len(epilogue.iters) == 1 or vectors < MIN_VECTORS or steps < MIN_STEPS:
        return False
    return is_long(epilogue)


def is_long(epilogue: Block) -> bool:
    """Whether a block computes functions that take tens of instructions."""
    parts = subexpressions(value_of(epilogue))
    return any(isinstance(e, Call) and e.fn not in SHORT_CALLS for e in parts)


def unroll_and_vectorize(sch: Schedule, *loops: str) -> None:
    """Unroll loops, and vectorize the last."""
    for loop in loops[:-1]:
        sch.unroll(loop)
    sch.vectorize(loops[-1])
