"""Unrolled loops → their bodies, one copy an iteration."""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import TRUE, Const, Expr, Load, Var, as_int, const
from tilewright.arith.known_lanes import known_lanes
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads, map_children
from tilewright.ir.loop.nodes import For, Func, If, Seq, Stmt, Store
from tilewright.ir.loop.walk import map_stmt, seq

EMPTY = Seq(())


def unroll(func: Func) -> Func:
    """`func` with every unrolled loop of constant extent written out."""
    return replace(func, body=_Unroller().stmt(func.body))


class _Unroller:
    """Writes loops out: a statement is copied once, with the values of all variables around it.

    Copies share expressions. What mentions two of five variables is made once for each pair of
    their values.
    """

    def __init__(self) -> None:
        self.values: dict[str, Expr] = {}
        self._made: dict[tuple[Expr | None, ...], Expr] = {}

    def stmt(self, stmt: Stmt) -> Stmt:
        """A statement with its unrolled loops written out; a constant guard disappears."""
        if isinstance(stmt, For) and stmt.kind == "unroll":
            return self._written_out(stmt)
        if not self.values:
            return map_stmt(stmt, self.stmt)
        if isinstance(stmt, Store):
            indices = tuple(simplify(self.expr(i)) for i in stmt.indices)
            mask = None if stmt.mask is None else self.expr(stmt.mask)
            if mask is not None and not any(known_lanes(mask) or (True,)):
                return EMPTY  # a copy past the end: what it would load may not exist
            return Store(stmt.buffer, indices, self.expr(stmt.value), mask)
        if isinstance(stmt, If):
            return self._guarded(stmt)
        return map_stmt(stmt, self.stmt, self.expr)

    def expr(self, e: Expr) -> Expr:
        """An expression in the current copy, the indices of what it loads simplified."""
        key = (e, *map(self.values.get, free_vars(e)))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._new(e)
        return found

    def _new(self, e: Expr) -> Expr:
        if isinstance(e, Var):
            return self.values.get(e.name, e)
        copy = map_children(e, self.expr)
        if not isinstance(copy, Load):
            return copy
        return Load(copy.buffer, tuple(map(simplify, copy.indices)), copy.dtype, copy.mask)

    def _written_out(self, loop: For) -> Stmt:
        extent = as_int(loop.extent)
        if extent is None:
            return self.stmt(replace(loop, kind="serial"))
        copies = []
        for i in range(extent):
            self.values[loop.name] = const(i)
            copies.append(self.stmt(loop.body))
        self.values.pop(loop.name, None)
        return _joined(seq(*copies))

    def _guarded(self, stmt: If) -> Stmt:
        cond = simplify(self.expr(stmt.cond))
        if isinstance(cond, Const):
            kept = stmt.then if cond is TRUE else stmt.orelse
            return EMPTY if kept is None else self.stmt(kept)
        orelse = None if stmt.orelse is None else self.stmt(stmt.orelse)
        return If(cond, self.stmt(stmt.then), orelse)


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
