"""Unrolled loops → their bodies, one copy an iteration."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from tilewright.arith.affine import Affine, from_affine, single, to_affine, with_constant
from tilewright.arith.expr import TRUE, Const, Expr, Load, Var, as_int, const
from tilewright.arith.known_lanes import known_lanes
from tilewright.arith.simplify import is_index, simplify
from tilewright.arith.vector import Ramp
from tilewright.arith.walk import free_vars, loads, map_children
from tilewright.ir.loop.nodes import For, Func, If, Seq, Stmt, Store
from tilewright.ir.loop.walk import map_stmt, seq

EMPTY = Seq(())
_Sum = tuple[tuple[tuple[str, int], ...], Expr | None, int]
"""The strides of an index in the loops that are written out, the rest of it, and a constant."""


def unroll(func: Func) -> Func:
    """`func` with every unrolled loop of constant extent written out."""
    return replace(func, body=_Unroller().stmt(func.body))


class _Unroller:
    """Writes loops out: a statement is copied once, with the values of all variables around it.

    Copies share expressions. What mentions two of five variables is made once for each pair of
    their values.
    """

    def __init__(self) -> None:
        self.values: dict[str, Const] = {}
        self._made: dict[tuple[Expr | None, ...], Expr] = {}
        self._sums: dict[tuple[Expr, frozenset[str]], _Sum | None] = {}

    def stmt(self, stmt: Stmt) -> Stmt:
        """A statement with its unrolled loops written out; a constant guard disappears."""
        if isinstance(stmt, For) and stmt.kind == "unroll":
            return self._written_out(stmt)
        if not self.values:
            return map_stmt(stmt, self.stmt)
        if isinstance(stmt, Store):
            indices = tuple(map(self.index, stmt.indices))
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
        if not isinstance(e, Load):
            return map_children(e, self.expr)
        mask = None if e.mask is None else self.expr(e.mask)
        if mask is TRUE:
            mask = None
        return Load(e.buffer, tuple(map(self.index, e.indices)), e.dtype, mask)

    def index(self, e: Expr) -> Expr:
        """An index in the current copy, simplified."""
        if isinstance(e, Ramp):
            return Ramp(self.index(e.base), e.stride, e.count)
        names = self.values.keys() & free_vars(e)
        if not names:
            return simplify(e)
        terms = self._terms(e, names)
        if terms is None:
            return simplify(self.expr(e))
        steps, rest, constant = terms
        for name, step in steps:
            constant += step * int(self.values[name].value)
        return with_constant(rest, constant)

    def _terms(self, e: Expr, names: Set[str]) -> _Sum | None:
        """An index as a sum, None where it is none or begins with its constant.

        Copies of such an index are simplified one by one.
        """
        key = (e, frozenset(names))
        if key not in self._sums:
            form = to_affine(simplify(e)) if is_index(e) else single(e)
            steps = {a.name: c for a, c in form.coeffs.items() if isinstance(a, Var)}
            rest = {a: c for a, c in form.coeffs.items() if names.isdisjoint(free_vars(a))}
            known = tuple((name, step) for name, step in steps.items() if name in names)
            whole = len(known) + len(rest) == len(form.coeffs)
            if whole and (not rest or max(rest.values()) > 0):
                bare = from_affine(Affine(rest, 0)) if rest else None
                self._sums[key] = (known, bare, form.constant)
            else:
                self._sums[key] = None
        return self._sums[key]

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
