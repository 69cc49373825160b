"""Edge tiles: the rows of a tiled loop are distributed over tiles of as many rows as they need.

Where the number of rows is not a multiple of the H rows of a tile, the last tile has fewer. To
compute all H of them costs as much as a full tile: of 2 rows in all, an 8-row tile wastes three
quarters of its work. The schedule annotates the loops over rows with the fewest rows that are worth
a copy of the code. If that is 1, there is a copy for every number of rows, and rows are distributed
evenly, 7 of them as 4 and 3 rather than 6 and 1, since low tiles do not fill the FMA pipelines:

    for t in parallel((N + 5) // 6) {            for t in parallel((N + 5) // 6) {
      for i in unroll(6) {edge_rows=1} {           E = rows of a tile, (N + 5) // 6 of which are N
        if t * 6 + i < N { A(t * 6 + i) }   →      if min(E, N - t * E) < 2 { 1 row: A(t * E) }
      }                                            else { ... else { 6 rows: A(t * E + i) } }
    }                                            }

Where the fewest rows are those of a full tile, all tiles are full: the last one is shifted back to
end with the last row, and stores only rows that no other tile stores. Fewer rows than a tile are
computed one by one.

    E = min(t * 6, N - 6)
    if N < 6 { for r in serial(N) { A(r) } }
    else { for i in unroll(6) { if t * 6 <= E + i { A(E + i) } } }

More than a few heights share the epilogue behind them, which tests of each row whether it is there:
the accumulators stay in registers. An epilogue that is not unrolled runs as often as there are
rows.

Otherwise heights double from the least one on, and tiles start where they did. They also do where
an outer loop splits the rows: a shifted tile could leave its part. A row is computed in the same
order in every tile, so results do not depend on the tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import TypeGuard

from tilewright.arith.affine import from_affine, stride_of, to_affine
from tilewright.arith.expr import (
    TRUE,
    Binary,
    Call,
    Expr,
    Load,
    Var,
    as_int,
    ceildiv,
    const,
    maximum,
    minimum,
)
from tilewright.arith.operators import SHORT_CALLS
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import conjuncts, free_vars, rewrite, subexpressions, substitute
from tilewright.core.dtypes import I64
from tilewright.ir.loop.annotations import EDGE_ROWS
from tilewright.ir.loop.nodes import Alloc, For, Func, If, Seq, Stmt, Store
from tilewright.ir.loop.walk import (
    expressions,
    map_exprs,
    map_stmt,
    rewrite_stmts,
    seq,
    statements,
    statements_in,
    substitute_stmt,
)

# Heights that have an epilogue of their own; more share one, where each row is guarded.
MAX_EPILOGUES = 2


@dataclass(frozen=True)
class _Rows:
    """How many rows are left when tile `number` starts, of `count` in all, in tiles of `height`.

    `together` says that one loop has all of them.
    """

    left: Expr
    count: Expr
    number: Expr
    height: int
    least: int
    together: bool

    @property
    def even(self) -> Expr:
        """Rows of a tile where all but the last have as many."""
        tiles = maximum(ceildiv(self.count, self.height), const(1))
        return simplify(ceildiv(self.count, tiles))

    @property
    def heights(self) -> list[int]:
        """The heights of tiles where rows stay where they are, the greatest last."""
        if self.least == 1:
            return list(range(1, self.height + 1))
        doubled = [self.least << n for n in range(self.height.bit_length())]
        return [*(n for n in doubled if n < self.height), self.height]

    @property
    def even_heights(self) -> list[int]:
        """The heights of tiles where rows are distributed evenly."""
        count, even = as_int(self.count), as_int(self.even)
        if count is None or even is None:
            return list(range(1, self.height + 1))
        return sorted({even, count - (max(0, -(-count // even) - 1)) * even} if count > 0 else {1})


def edge_tiles(func: Func) -> Func:
    """`func` with tiles of other heights for the rows of loops that are marked so."""
    return replace(func, body=_edges(func.body, frozenset()))


def _edges(stmt: Stmt, outer: frozenset[str]) -> Stmt:
    if isinstance(stmt, For) and stmt.kind not in ("unroll", "vectorize"):
        found = next(_guards(stmt, outer), None)
        if found is not None:
            return replace(stmt, body=_inside(stmt.body, found, frozenset()))
        outer |= {stmt.name}
    return map_stmt(stmt, lambda s: _edges(s, outer))


def _guards(loop: For, outer: frozenset[str]) -> Iterator[_Rows]:
    """What the guards of rows in an iteration of the loop say."""
    for path, stmt in statements(loop.body):
        around = [s for s in path if isinstance(s, For)]
        rows = [s for s in around if EDGE_ROWS.is_on(s)]
        if not isinstance(stmt, If) or not rows:
            continue
        height = as_int(rows[-1].extent)
        for condition in conjuncts(stmt.cond):
            left = rows_left(condition, rows[-1].name)
            inner = {s.name for s in around}
            if left is None or height is None or inner & free_vars(left):
                continue
            if loop.name in free_vars(left):
                count = _without(left, loop.name)
                number = simplify((count - left) // height)
                together = not outer & free_vars(count)
                yield _Rows(left, count, number, height, EDGE_ROWS.of(rows[-1]), together)


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


def rows_left(condition: Expr, row: str) -> Expr | None:
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
    marked = [s.name for s in statements_in(body) if isinstance(s, For) and EDGE_ROWS.is_on(s)]
    movable = rows.together and rows.least in (1, rows.height)
    movable = movable and _only_rows_move(body, rows, marked, local)
    if movable and rows.least == 1:
        even = _start_at(rows.number * rows.even, unguarded(body, rows.left, marked), rows, local)
        left = simplify(minimum(rows.even, rows.count - rows.number * rows.even))
        return If(const(0) < left, _by_height(even, rows, left, rows.even_heights))
    if movable:
        return _laid_back(body, rows, marked, local)
    return _by_height(body, rows, rows.left, rows.heights)


def _by_height(body: Stmt, rows: _Rows, left: Expr, heights: list[int]) -> Stmt:
    """A copy of the tile for each height; the lowest that holds all rows runs."""
    *lower, full = heights
    tile, epilogue = _epilogue(body, rows.height) if len(heights) > MAX_EPILOGUES else (body, [])
    result = _of_height(tile, rows.height, full)
    for height in reversed(lower):
        result = If(left < height + 1, _of_height(tile, rows.height, height), result)
    return seq(result, *(_present(loop, rows, left) for loop in epilogue))


def _epilogue(body: Stmt, height: int) -> tuple[Stmt, list[For]]:
    """A tile without the loops over its finished rows at the end, and those loops."""
    stmts = list(body.stmts) if isinstance(body, Seq) else [body]
    finished: list[For] = []
    while len(stmts) > 1 and _is_over_rows(last := stmts[-1], height):
        if finished and last.kind != finished[0].kind:
            break
        finished.insert(0, last)
        stmts.pop()
    return seq(*stmts), finished


def _is_over_rows(stmt: Stmt, height: int) -> TypeGuard[For]:
    """Whether a loop serves tiles of all heights; long ones unrolled would take their registers."""
    if not isinstance(stmt, For) or not EDGE_ROWS.is_on(stmt) or as_int(stmt.extent) != height:
        return False
    return stmt.kind != "unroll" or not _is_long(stmt)


def _is_long(stmt: Stmt) -> bool:
    """Whether functions of tens of instructions are computed."""
    parts = (e for whole in expressions(stmt) for e in subexpressions(whole))
    return any(isinstance(e, Call) and e.fn not in SHORT_CALLS for e in parts)


def _present(loop: For, rows: _Rows, left: Expr) -> Stmt:
    """A loop over the rows of a tile of any height."""
    body = unguarded(loop.body, rows.left, [loop.name])
    if loop.kind == "unroll":
        return replace(loop, body=If(Var(loop.name) < left, body))
    return replace(loop, body=body, extent=simplify(minimum(left, const(rows.height))))


def _only_rows_move(body: Stmt, rows: _Rows, marked: Sequence[str], local: frozenset[str]) -> bool:
    """Whether only its rows depend on the number of a tile, so that it may be shifted."""
    start = rows.number * rows.height
    fixed = moved(body, dict.fromkeys(marked, Var("row") - start), local)
    return not any(rows.number in set(subexpressions(simplify(e))) for e in expressions(fixed))


def _laid_back(body: Stmt, rows: _Rows, marked: Sequence[str], local: frozenset[str]) -> Stmt:
    """Whole tiles, the last one moved back; or single rows, where there are too few."""
    own = rows.number * rows.height
    exact = unguarded(body, rows.left, marked, lambda row: own <= own + Var(row))
    start = simplify(minimum(own, rows.count - rows.height))
    whole = _start_at(start, exact, rows, local)
    single = Var(f"{marked[0]}.single")
    alone = _start_at(single, unguarded(body, rows.left, marked), rows, local)
    short = For(single.name, rows.count, "serial", _of_height(alone, rows.height, 1))
    return If(rows.count < rows.height, short, whole)


def _start_at(start: Expr, body: Stmt, rows: _Rows, local: frozenset[str]) -> Stmt:
    """The tile whose first row is `start`."""
    marked = [s.name for s in statements_in(body) if isinstance(s, For) and EDGE_ROWS.is_on(s)]
    shift = simplify(start - rows.number * rows.height)
    return moved(body, {row: Var(row) + shift for row in marked}, local)


def unguarded(
    body: Stmt,
    left: Expr,
    marked: Sequence[str],
    stored: Callable[[str], Expr] = lambda row: TRUE,
) -> Stmt:
    """A tile all of whose rows are there; `stored` says of a row whether it is written."""

    def unclamped(e: Expr) -> Expr | None:
        if not isinstance(e, Binary) or e.op != "min" or e.dtype != I64:
            return None
        return e.a if any(rows_left(e.a < e.b + 1, r) is left for r in marked) else None

    def guarded(s: Stmt) -> Stmt | None:
        if not isinstance(s, If) or s.orelse is not None:
            return None
        found = [[r for r in marked if rows_left(c, r) is left] for c in conjuncts(s.cond)]
        pairs = zip(conjuncts(s.cond), found, strict=True)
        kept = [stored(own[0]) if own else c for c, own in pairs]
        kept = [c for c in kept if c is not TRUE]
        return replace(s, cond=reduce(and_, kept)) if kept else s.then

    exact = map_exprs(body, lambda e: rewrite(e, unclamped))
    return rewrite_stmts(exact, guarded)


def moved(body: Stmt, values: Mapping[str, Expr], local: Set[str]) -> Stmt:
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
    lower = {s.name for s in statements_in(body) if isinstance(s, For) and EDGE_ROWS.is_on(s)}
    return copied(body, f"edge{rows}", dict.fromkeys(lower, rows), height)


def copied(body: Stmt, name: str, extents: Mapping[str, int], height: int) -> Stmt:
    """A copy whose loops are named for it; those that are given, and `height` long, get shorter."""
    names = {s.name: f"{s.name}.{name}" for s in statements_in(body) if isinstance(s, For)}

    def changed(s: Stmt) -> Stmt | None:
        if not isinstance(s, For):
            return None
        fewer = s.name in extents and as_int(s.extent) == height
        extent = const(extents[s.name]) if fewer else s.extent
        return replace(s, name=names[s.name], extent=extent)

    renamed = substitute_stmt(body, {old: Var(new) for old, new in names.items()})
    return rewrite_stmts(renamed, changed)
