"""Shift inwards: the last tile of a line of symbolic length is shifted back to be full.

Some rows are then computed twice, and stored once. The other tiles have no guards, and the padding
that the last one reads is known, since it ends with the line. The schedule annotates the loops over
rows; a line that is shorter than a tile is computed row by row.

    for t in serial((W + 6) // 7) {            if W < 7 { for r in serial(W) { A(r) } }
      for i in unroll(7) {shift_inwards=1} {            else {
        if t * 7 + i < W { A(t * 7 + i) }  →     for t in serial((W - 1) // 7) {
      }                                            for i in unroll(7) { A(t * 7 + i) }
    }                                            }
                                                 for i in unroll(7) {
                                                   if (W - 1) // 7 * 7 <= W - 7 + i { A(W - 7 + i) }
                                                 }
                                               }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Binary, Expr, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import conjuncts, free_vars, rewrite, substitute
from tilewright.core.dtypes import BOOL
from tilewright.finalize.cpu.edge_tiles import copied, moved, rows_left, unguarded
from tilewright.ir.loop.annotations import SHIFT_INWARDS
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, If, Stmt
from tilewright.ir.loop.walk import (
    expressions,
    map_exprs,
    map_stmt,
    rewrite_stmts,
    seq,
    statements_in,
    substitute_stmt,
)


@dataclass(frozen=True)
class _Line:
    """The rows of a line of `length`: `loop` runs over tiles of `height`, `rows` inside of them."""

    loop: For
    rows: tuple[str, ...]
    height: int
    length: Expr

    @property
    def left(self) -> Expr:
        """How many rows are left when a tile starts."""
        return simplify(self.length - Var(self.loop.name) * self.height)


def shift_inwards(func: Func) -> Func:
    """`func` with the tiles of marked lines laid so that all of them are whole."""
    return replace(func, body=_lines(func.body))


def _lines(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For) and stmt.kind == "serial":
        line = next(_ends(stmt), None)
        if line is not None and _only_rows_move(line):
            own = _own(stmt.body)
            bare = replace(stmt, body=rewrite_stmts(stmt.body, _without_alloc))
            return reduce(lambda body, b: Alloc(b, body), own, _laid(replace(line, loop=bare), own))
    return map_stmt(stmt, _lines)


def _ends(loop: For) -> Iterator[_Line]:
    """The line whose tiles a loop runs over, where a guard says that it may end inside of one."""
    rows = {
        s.name: as_int(s.extent)
        for s in statements_in(loop.body)
        if isinstance(s, For) and SHIFT_INWARDS.is_on(s)
    }
    guards = (s.cond for s in statements_in(loop.body) if isinstance(s, If)) if rows else ()
    for condition in (c for guard in guards for c in conjuncts(guard)):
        for row, height in rows.items():
            left = rows_left(condition, row)
            if left is None or not height or stride_of(left, loop.name) != -height:
                continue
            length = simplify(substitute(left, {loop.name: const(0)}))
            yield _Line(loop, tuple(rows), height, length)


def _only_rows_move(line: _Line) -> bool:
    """Whether only its rows depend on the number of a tile, so that it may be shifted."""
    number = Var(line.loop.name)
    rows = dict.fromkeys(line.rows, Var("row") - number * line.height)
    fixed = moved(line.loop.body, rows, {b.name for b in _own(line.loop.body)})
    return not any(number.name in free_vars(simplify(e)) for e in expressions(fixed))


def _own(tile: Stmt) -> list[Buffer]:
    """The buffers of a tile, which all tiles reuse."""
    return [s.buffer for s in statements_in(tile) if isinstance(s, Alloc)]


def _without_alloc(stmt: Stmt) -> Stmt | None:
    return stmt.body if isinstance(stmt, Alloc) else None


def _laid(line: _Line, own: Sequence[Buffer]) -> Stmt:
    """A line's tiles: whole ones, the last one moved back; or rows, where none is whole."""
    tiles = simplify((line.length - 1) // line.height)
    body = line.loop.body
    tile = unguarded(body, line.left, line.rows)
    whole = replace(line.loop, extent=tiles, body=tile)
    start = simplify(line.length - line.height)
    ended = unguarded(body, line.left, line.rows, lambda row: tiles * line.height <= Var(row))
    last = _tile_at(line, own, start, ended)
    single = Var(f"{line.loop.name}.single")
    lone = _tile_at(line, own, single, tile)
    lone = copied(lone, "single", dict.fromkeys(line.rows, 1), line.height)
    short = For(single.name, line.length, "serial", _uncut(lone))
    return If(line.length < line.height, short, seq(whole, copied(last, "last", {}, line.height)))


def _tile_at(line: _Line, own: Sequence[Buffer], start: Expr, tile: Stmt) -> Stmt:
    """A tile whose first row is `start`, what it tests as simple as that makes it."""
    first = substitute_stmt(tile, {line.loop.name: const(0)})
    laid = moved(first, {row: Var(row) + start for row in line.rows}, {b.name for b in own})

    def simpler(e: Expr) -> Expr | None:
        return simplify(e) if e.dtype == BOOL and isinstance(e, Binary) else None

    return map_exprs(laid, lambda e: rewrite(e, simpler))


def _uncut(tile: Stmt) -> Stmt:
    """A tile whose loops are not worth further copies of the code."""
    return rewrite_stmts(tile, lambda s: replace(s, annotations=()) if isinstance(s, For) else None)
