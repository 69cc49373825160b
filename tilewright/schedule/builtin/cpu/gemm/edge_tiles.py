"""Edge tiles: fewer rows in the last tile, where a full one would waste much work."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.affine import factors, to_affine
from tilewright.arith.expr import Expr, as_int
from tilewright.ir.loop.annotations import EDGE_ROWS
from tilewright.ir.loop.nodes import Iter
from tilewright.schedule.schedule import Schedule

# Padded rows that a full last tile may compute, as a fraction of all rows.
MAX_WASTE = 0.05
# Symbolic factors of the number of pixels of a batch of images: batch, height, width.
IMAGE_AXES = 3


def mark_edges(
    sch: Schedule, name: str, row: Iter | None, tile_rows: int, least: int, loops: Sequence[str]
) -> None:
    """Let the last tile of a block have fewer rows, where a full one would waste much."""
    edge = choose_edge(sch, name, row, tile_rows, least)
    for loop in loops if edge else ():
        sch.annotate(loop, EDGE_ROWS.key, edge)


def choose_edge(sch: Schedule, name: str, row: Iter | None, tile_rows: int, least: int) -> int:
    """The fewest rows of the last tile of a block; 0 where it is a full one."""
    edge = edge_height(row, tile_rows, least)
    rows = 0 if row is None else as_int(row.extent)
    other = 0 if rows is None or rows % tile_rows == 0 or least >= tile_rows else least
    return sch.choose(f"{name}.edge_rows", edge, lambda: sorted({0, edge, other}))


def edge_height(row: Iter | None, tile_rows: int, least: int) -> int:
    """The fewest rows of the last tile; 0 where it is a full one and wastes little.

    A symbolic number of rows may always waste much. Where the fewest rows are those of a tile, the
    last tile overlaps the one before.
    """
    rows = 0 if row is None else as_int(row.extent)
    if rows is None:
        return least
    return least if -rows % tile_rows > rows * MAX_WASTE and least < tile_rows else 0


def are_pixels(row: Iter | None) -> bool:
    """Whether rows are the pixels of images of symbolic batch, height and width.

    There are then enough rows for a full tile, or none.
    """
    return row is not None and sum(len(factors(a)) for a in _only(row)) >= IMAGE_AXES


def _only(row: Iter) -> tuple[Expr, ...]:
    """The product of sizes that the number of rows is a multiple of, if it is one."""
    form = to_affine(row.extent)
    return tuple(form.coeffs) if len(form.coeffs) == 1 and not form.constant else ()
