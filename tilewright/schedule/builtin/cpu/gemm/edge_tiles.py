"""The last tile of rows: lower than the others, where those would compute much for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.affine import factors, to_affine
from tilewright.arith.expr import Expr, as_int
from tilewright.ir.loop.annotations import EDGE_ROWS
from tilewright.ir.loop.nodes import Iter
from tilewright.schedule.schedule import Schedule

# The share of rows that may be computed for nothing beside those that there are.
MOST_WASTE = 0.05
# Sizes that are multiplied to the number of pixels.
IMAGE_AXES = 3


def mark_edges(
    sch: Schedule, name: str, row: Iter | None, tile_rows: int, least: int, loops: Sequence[str]
) -> None:
    """Let the last tile of a block have fewer rows where the others would be much for nothing."""
    edge = choose_edge(sch, name, row, tile_rows, least)
    for loop in loops if edge else ():
        sch.annotate(loop, EDGE_ROWS.key, edge)


def choose_edge(sch: Schedule, name: str, row: Iter | None, tile_rows: int, least: int) -> int:
    """The least height of the last tile of a block; 0 where it has all rows."""
    edge = edge_height(row, tile_rows, least)
    rows = 0 if row is None else as_int(row.extent)
    other = 0 if rows is None or rows % tile_rows == 0 or least >= tile_rows else least
    return sch.choose(f"{name}.edge_rows", edge, lambda: sorted({0, edge, other}))


def edge_height(row: Iter | None, tile_rows: int, least: int) -> int:
    """The least height of the last tile; 0 where it has all rows and wastes little.

    That may be much of any number of rows that is not known. Where the least height is a tile's,
    the last one of those shares rows with the one before.
    """
    rows = 0 if row is None else as_int(row.extent)
    if rows is None:
        return least
    return least if -rows % tile_rows > rows * MOST_WASTE and least < tile_rows else 0


def are_pixels(row: Iter | None) -> bool:
    """Whether rows are so many, unless all are none, that tiles need not be lower than they are.

    That is what the pixels of images are whose number, height and width are not known.
    """
    return row is not None and sum(len(factors(a)) for a in _only(row)) >= IMAGE_AXES


def _only(row: Iter) -> tuple[Expr, ...]:
    """The product of sizes that the number of rows is a multiple of, if it is one."""
    form = to_affine(row.extent)
    return tuple(form.coeffs) if len(form.coeffs) == 1 and not form.constant else ()
