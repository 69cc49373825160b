"""The epilogue of a tile: blocks that read its accumulators, computed as soon as it is finished.

for tiles
  C = ...                                              registers
  for rows of the tile                                 unrolled
    for vectors of a row: out[row, vector] = f(C[row, vector])
"""

from __future__ import annotations

from tilewright.arith.expr import as_int
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.schedule import Schedule

# Longer loops are never unrolled: no register tile has as many rows or vectors.
MAX_UNROLL = 64


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


def unroll_and_vectorize(sch: Schedule, *loops: str) -> None:
    """Unroll loops, and vectorize the last."""
    for loop in loops[:-1]:
        sch.unroll(loop)
    sch.vectorize(loops[-1])
