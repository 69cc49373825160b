"""Unrolled loops → their bodies, one copy an iteration."""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import TRUE, Const, Expr, Load, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import loads, rewrite
from tilewright.ir.loop.nodes import For, Func, If, Seq, Stmt, Store
from tilewright.ir.loop.walk import map_stmt, seq, substitute_stmt

EMPTY = Seq(())


def unroll(func: Func) -> Func:
    """`func` with every unrolled loop of constant extent written out."""
    return replace(func, body=_Unroller().stmt(func.body))


class _Unroller:
    """Writes loops out; indices that occur in many copies are simplified once."""

    def __init__(self) -> None:
        self.memo: dict[Expr, Expr] = {}

    def stmt(self, stmt: Stmt) -> Stmt:
        """A statement with its unrolled loops written out."""
        if not (isinstance(stmt, For) and stmt.kind == "unroll"):
            return map_stmt(stmt, self.stmt)
        extent = as_int(stmt.extent)
        if extent is None:
            return map_stmt(replace(stmt, kind="serial"), self.stmt)
        body = self.stmt(stmt.body)
        copies = (substitute_stmt(body, {stmt.name: const(i)}) for i in range(extent))
        return _joined(seq(*map(self._tidy, copies)))

    def _tidy(self, stmt: Stmt) -> Stmt:
        """Simplify indices and guards after substitution; a guard that is constant disappears."""
        if isinstance(stmt, If):
            cond = simplify(stmt.cond)
            if isinstance(cond, Const):
                kept = stmt.then if cond is TRUE else stmt.orelse
                return EMPTY if kept is None else self._tidy(kept)
            stmt = replace(stmt, cond=cond)
        if isinstance(stmt, Store):
            index = tuple(simplify(i) for i in stmt.indices)
            value = rewrite(stmt.value, _tidy_load, self.memo)
            return Store(stmt.buffer, index, value, stmt.mask)
        return map_stmt(stmt, self._tidy)


def _joined(stmt: Stmt) -> Stmt:
    """Neighbours under the same guard share it."""
    if not isinstance(stmt, Seq):
        return stmt
    kept: list[Stmt] = []
    for s in stmt.stmts:
        last = kept[-1] if kept else None
        if isinstance(s, If) and isinstance(last, If) and _same_guard(s, last):
            kept[-1] = If(s.cond, seq(last.then, s.then))
        else:
            kept.append(s)
    return seq(*kept)


def _same_guard(a: If, b: If) -> bool:
    """Whether two guards are the same condition of indices, which nothing in between changes."""
    alone = a.orelse is None and b.orelse is None
    return alone and a.cond is b.cond and next(loads(a.cond), None) is None


def _tidy_load(x: Expr) -> Expr | None:
    if not isinstance(x, Load):
        return None
    return Load(x.buffer, tuple(simplify(i) for i in x.indices), x.dtype, x.mask)
