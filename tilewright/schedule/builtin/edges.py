"""The last tile of rows: lower than the others, where those would compute much for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Iter
from tilewright.schedule.schedule import Schedule

# The share of rows that may be computed for nothing beside those that there are.
MOST_WASTE = 0.05


def mark_edges(
    sch: Schedule, row: Iter | None, tile_rows: int, least: int, loops: Sequence[str]
) -> None:
    """Let the last tile have fewer rows where the others would be much for nothing."""
    edge = edge_height(row, tile_rows, least)
    for loop in loops if edge else ():
        sch.annotate(loop, "edge", edge)


def edge_height(row: Iter | None, tile_rows: int, least: int) -> int:
    """The least height of the last tile; 0 where it has all rows and wastes little.

    That may be much of any number of rows that is not known.
    """
    rows = 0 if row is None else as_int(row.extent)
    wasted = rows is None or -rows % tile_rows > rows * MOST_WASTE
    return least if wasted and least < tile_rows else 0
