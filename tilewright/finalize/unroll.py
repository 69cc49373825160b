"""Unrolled loops → their bodies, one copy an iteration."""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import TRUE, Const, Expr, Load, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import rewrite
from tilewright.ir.loop.nodes import For, Func, If, Seq, Stmt, Store
from tilewright.ir.loop.walk import map_stmt, seq, substitute_stmt

NOTHING = Seq(())


def unroll(func: Func) -> Func:
    """`func` with every unrolled loop of constant extent written out."""
    return replace(func, body=_unroll(func.body))


def _unroll(stmt: Stmt) -> Stmt:
    if not (isinstance(stmt, For) and stmt.kind == "unroll"):
        return map_stmt(stmt, _unroll)
    extent = as_int(stmt.extent)
    if extent is None:
        return map_stmt(replace(stmt, kind="serial"), _unroll)
    body = _unroll(stmt.body)
    copies = [_tidy(substitute_stmt(body, {stmt.name: const(i)})) for i in range(extent)]
    return seq(*copies)


def _tidy(stmt: Stmt) -> Stmt:
    """Simplify indices and guards after substitution; a guard that is constant disappears."""
    if isinstance(stmt, If):
        cond = simplify(stmt.cond)
        if isinstance(cond, Const):
            kept = stmt.then if cond is TRUE else stmt.orelse
            return NOTHING if kept is None else _tidy(kept)
        stmt = replace(stmt, cond=cond)
    if isinstance(stmt, Store):
        index = tuple(simplify(i) for i in stmt.indices)
        return Store(stmt.buffer, index, _tidy_loads(stmt.value), stmt.mask)
    return map_stmt(stmt, _tidy)


def _tidy_loads(e: Expr) -> Expr:
    def load(x: Expr) -> Expr | None:
        if not isinstance(x, Load):
            return None
        return Load(x.buffer, tuple(simplify(i) for i in x.indices), x.dtype, x.mask)

    return rewrite(e, load)
