"""The last rows of a tiled loop get tiles of their own height.

A tile of H rows that is computed over a number of rows not known before has a last tile with fewer.
Computing all H of it costs as much as a full one: with 2 rows in all, three quarters of the work of
an 8-row tile are for nothing. The rows' loops are marked by the schedule with the least height that
is worth a copy of the code:

    for i.0 in parallel((N + 7) // 8) {          for i.0 in parallel((N + 7) // 8) {
      for i.1 in unroll(8) {edge=2} {              if N - i.0 * 8 < 3 { 2 rows }
        if i.0 * 8 + i.1 < N { A }          →      else { if N - i.0 * 8 < 5 { 4 rows }
      }                                                   else { 8 rows } }
    }                                            }

Heights double from the least one on. What a row holds is computed in the same order whichever tile
it is in, so results do not depend on the tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Binary, Expr, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import conjuncts, free_vars, substitute
from tilewright.core.dtypes import I64
from tilewright.ir.loop.nodes import Alloc, For, Func, If, Stmt
from tilewright.ir.loop.walk import map_stmt, rewrite_stmts, statements, substitute_stmt

# The note on an unrolled loop over the rows of a tile: the least height of a tile.
EDGE = "edge"


def edge_tiles(func: Func) -> Func:
    """`func` with lower tiles for the last rows of loops that are marked so."""
    return replace(func, body=_edges(func.body))


def _edges(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For) and stmt.kind not in ("unroll", "vectorize"):
        found = next(_guards(stmt), None)
        if found is not None:
            return replace(stmt, body=_inside(stmt.body, *found))
    return map_stmt(stmt, _edges)


def _guards(loop: For) -> Iterator[tuple[Expr, int, int]]:
    """The rows left in an iteration of the loop, those of a tile, and the least worth a copy."""
    for path, stmt in statements(loop.body):
        around = [s for s in path if isinstance(s, For)]
        rows = [s for s in around if _least(s)]
        if not isinstance(stmt, If) or not rows:
            continue
        height = as_int(rows[-1].extent)
        for condition in conjuncts(stmt.cond):
            left = _rows_left(condition, rows[-1])
            inner = {s.name for s in around}
            if left is None or height is None or inner & free_vars(left):
                continue
            if loop.name in free_vars(left):
                yield left, height, _least(rows[-1])


def _least(loop: For) -> int:
    """The least height that a loop over rows is marked with, 0 if it is not."""
    return next((int(value) for key, value in loop.annotations if key == EDGE), 0)


def _rows_left(condition: Expr, row: For) -> Expr | None:
    """`b - a` for a guard `a + row < b`."""
    if not isinstance(condition, Binary) or condition.op != "lt" or condition.a.dtype != I64:
        return None
    left = simplify(condition.b - condition.a)
    if stride_of(left, row.name) != -1:
        return None
    return simplify(substitute(left, {row.name: const(0)}))


def _inside(body: Stmt, left: Expr, height: int, least: int) -> Stmt:
    """The tiles of an iteration; buffers are shared by all of them."""
    if isinstance(body, Alloc):
        return replace(body, body=_inside(body.body, left, height, least))
    heights = [least << n for n in range(height.bit_length()) if least << n < height]
    result = body
    for rows in reversed(heights):
        result = If(left < rows + 1, _of_height(body, height, rows), result)
    return result


def _of_height(body: Stmt, height: int, rows: int) -> Stmt:
    """A copy of the tile with fewer rows; its loops get names of their own."""
    marked = [s for _, s in statements(body) if isinstance(s, For)]
    names = {s.name: f"{s.name}.edge{rows}" for s in marked}

    def changed(s: Stmt) -> Stmt | None:
        if not isinstance(s, For):
            return None
        extent = const(rows) if _least(s) and as_int(s.extent) == height else s.extent
        return replace(s, name=names[s.name], extent=extent)

    copied = substitute_stmt(body, {old: Var(new) for old, new in names.items()})
    return rewrite_stmts(copied, changed)
