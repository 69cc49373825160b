"""The rows of a tiled loop are dealt out to tiles of the height that they need.

A tile of H rows that is computed over a number of rows not known before has a last tile with fewer.
Computing all H of it costs as much as a full one: with 2 rows in all, three quarters of the work of
an 8-row tile are for nothing. The rows' loops are marked by the schedule with the least height that
is worth a copy of the code. From 1 on there is one for every height, and rows are dealt out evenly,
7 of them as 4 and 3 rather than 6 and 1, since low tiles do not keep the arithmetic units busy:

    for t in parallel((N + 5) // 6) {            for t in parallel((N + 5) // 6) {
      for i in unroll(6) {edge=1} {                E = rows of a tile, (N + 5) // 6 of which are N
        if t * 6 + i < N { A(t * 6 + i) }   →      if min(E, N - t * E) < 2 { 1 row: A(t * E) }
      }                                            else { ... else { 6 rows: A(t * E + i) } }
    }                                            }

Otherwise heights double from the least one on, and rows stay where they are. What a row holds is
computed in the same order whichever tile it is in, so results do not depend on the tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from tilewright.arith.affine import from_affine, stride_of, to_affine
from tilewright.arith.expr import (
    Binary,
    Expr,
    Load,
    Var,
    as_int,
    ceildiv,
    const,
    maximum,
    minimum,
)
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import conjuncts, free_vars, rewrite, subexpressions, substitute
from tilewright.core.dtypes import I64
from tilewright.ir.loop.nodes import Alloc, For, Func, If, Stmt, Store
from tilewright.ir.loop.walk import (
    expressions,
    map_exprs,
    map_stmt,
    rewrite_stmts,
    statements,
    substitute_stmt,
)

# The note on an unrolled loop over the rows of a tile: the least height of a tile.
EDGE = "edge"


@dataclass(frozen=True)
class _Rows:
    """How many rows are left when tile `number` starts, of `count` in all, in tiles of `height`."""

    left: Expr
    count: Expr
    number: Expr
    height: int
    least: int

    @property
    def even(self) -> Expr:
        """Rows of a tile where all but the last have as many."""
        tiles = maximum(ceildiv(self.count, self.height), const(1))
        return simplify(ceildiv(self.count, tiles))

    @property
    def heights(self) -> list[int]:
        """The heights of tiles, the greatest last."""
        if self.least > 1:
            doubled = [self.least << n for n in range(self.height.bit_length())]
            return [*(n for n in doubled if n < self.height), self.height]
        count, even = as_int(self.count), as_int(self.even)
        if count is None or even is None:
            return list(range(1, self.height + 1))
        return sorted({even, count - (max(0, -(-count // even) - 1)) * even} if count > 0 else {1})


def edge_tiles(func: Func) -> Func:
    """`func` with tiles of other heights for the rows of loops that are marked so."""
    return replace(func, body=_edges(func.body))


def _edges(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For) and stmt.kind not in ("unroll", "vectorize"):
        found = next(_guards(stmt), None)
        if found is not None:
            return replace(stmt, body=_inside(stmt.body, found, frozenset()))
    return map_stmt(stmt, _edges)


def _guards(loop: For) -> Iterator[_Rows]:
    """What the guards of rows in an iteration of the loop say."""
    for path, stmt in statements(loop.body):
        around = [s for s in path if isinstance(s, For)]
        rows = [s for s in around if _least(s)]
        if not isinstance(stmt, If) or not rows:
            continue
        height = as_int(rows[-1].extent)
        for condition in conjuncts(stmt.cond):
            left = _rows_left(condition, rows[-1].name)
            inner = {s.name for s in around}
            if left is None or height is None or inner & free_vars(left):
                continue
            if loop.name in free_vars(left):
                count = _without(left, loop.name)
                number = simplify((count - left) // height)
                yield _Rows(left, count, number, height, _least(rows[-1]))


def _without(left: Expr, loop: str) -> Expr:
    """The terms of a sum that do not change in a loop."""
    form = to_affine(left)
    return from_affine(
        reduce(
            lambda rest, atom: rest - to_affine(atom).scale(form.coeffs[atom]),
            (atom for atom in form.coeffs if loop in free_vars(atom)),
            form,
        )
    )


def _least(loop: For) -> int:
    """The least height that a loop over rows is marked with, 0 if it is not."""
    return next((int(value) for key, value in loop.annotations if key == EDGE), 0)


def _rows_left(condition: Expr, row: str) -> Expr | None:
    """`b - a` for a guard `a + row < b`."""
    if not isinstance(condition, Binary) or condition.op != "lt" or condition.a.dtype != I64:
        return None
    left = simplify(condition.b - condition.a)
    if stride_of(left, row) != -1:
        return None
    return simplify(substitute(left, {row: const(0)}))


def _inside(body: Stmt, rows: _Rows, local: frozenset[str]) -> Stmt:
    """The tiles of an iteration; buffers are shared by all of them."""
    if isinstance(body, Alloc):
        inner = _inside(body.body, rows, local | {body.buffer.name})
        return replace(body, body=inner)
    even = _dealt_evenly(body, rows, local) if rows.least == 1 else None
    if even is not None:
        left = simplify(minimum(rows.even, rows.count - rows.number * rows.even))
        return If(const(0) < left, _by_height(even, rows, left))
    return _by_height(body, rows, rows.left)


def _by_height(body: Stmt, rows: _Rows, left: Expr) -> Stmt:
    """A copy of the tile for each height, the lowest that has room for all rows is taken."""
    *lower, full = rows.heights
    result = _of_height(body, rows.height, full)
    for height in reversed(lower):
        result = If(left < height + 1, _of_height(body, rows.height, height), result)
    return result


def _dealt_evenly(body: Stmt, rows: _Rows, local: frozenset[str]) -> Stmt | None:
    """The tile with just the rows that fall to it; `None` where it is not only rows that move."""
    marked = [s.name for _, s in statements(body) if isinstance(s, For) and _least(s)]
    start = rows.number * rows.height
    fixed = _moved(body, dict.fromkeys(marked, Var(EDGE) - start), local)
    if any(rows.number in set(subexpressions(simplify(e))) for e in expressions(fixed)):
        return None
    shift = simplify(rows.number * rows.even - start)
    exact = rewrite_stmts(body, lambda s: _unguarded(s, rows, marked))
    return _moved(exact, {row: Var(row) + shift for row in marked}, local)


def _unguarded(stmt: Stmt, rows: _Rows, marked: Sequence[str]) -> Stmt | None:
    """A statement without the guard of its row."""
    if not isinstance(stmt, If) or stmt.orelse is not None:
        return None
    kept = [
        c for c in conjuncts(stmt.cond) if all(_rows_left(c, r) is not rows.left for r in marked)
    ]
    return replace(stmt, cond=reduce(and_, kept)) if kept else stmt.then


def _moved(body: Stmt, values: Mapping[str, Expr], local: frozenset[str]) -> Stmt:
    """The body with other rows; buffers of the tile's own are indexed as before."""
    own = {row: Var(f"{row}.own") for row in values}

    def of_tile(e: Expr) -> Expr | None:
        return substitute(e, own) if isinstance(e, Load) and e.buffer in local else None

    def stored(s: Stmt) -> Stmt | None:
        if not isinstance(s, Store) or s.buffer not in local:
            return None
        return replace(s, indices=tuple(substitute(i, own) for i in s.indices))

    kept = rewrite_stmts(map_exprs(body, lambda e: rewrite(e, of_tile)), stored)
    back = {mark.name: Var(row) for row, mark in own.items()}
    return substitute_stmt(substitute_stmt(kept, values), back)


def _of_height(body: Stmt, height: int, rows: int) -> Stmt:
    """A copy of the tile with fewer rows; its loops get names of their own."""
    if rows == height:
        return body
    marked = [s for _, s in statements(body) if isinstance(s, For)]
    names = {s.name: f"{s.name}.edge{rows}" for s in marked}

    def changed(s: Stmt) -> Stmt | None:
        if not isinstance(s, For):
            return None
        extent = const(rows) if _least(s) and as_int(s.extent) == height else s.extent
        return replace(s, name=names[s.name], extent=extent)

    copied = substitute_stmt(body, {old: Var(new) for old, new in names.items()})
    return rewrite_stmts(copied, changed)
