"""A loop whose guard holds for all but its last iterations is cut in two, so that the main part
runs without the guard.

    for i.0 in serial((N + 3) // 4) {               for i.0 in serial(N // 4) {
      for i.1 in vectorize(4) {                       for i.1 in vectorize(4) { A }
        if i.0 * 4 + i.1 < N { A }             →    }
      }                                             for i.0.tail in serial((N + 3) // 4 - N // 4) {
    }                                                 ... guarded, at iteration N // 4 + i.0.tail
                                                    }

Only guards that depend on a vectorised loop are worth a copy of the code: a guard on a scalar costs
one predictable branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeGuard

from tilewright.arith.affine import stride_of
from tilewright.arith.bounds import upper
from tilewright.arith.expr import (
    TRUE,
    Binary,
    Expr,
    Load,
    Select,
    Var,
    as_int,
    const,
    maximum,
    minimum,
)
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import conjuncts, free_vars, loads, rewrite, subexpressions
from tilewright.core.dtypes import I64
from tilewright.ir.loop.nodes import For, Func, If, Stmt
from tilewright.ir.loop.walk import (
    map_exprs,
    map_stmt,
    own_expressions,
    rewrite_stmts,
    seq,
    statements,
    substitute_stmt,
)

Extents = Mapping[str, Expr]


def partition(func: Func) -> Func:
    """`func` with the guards of vectorised loops hoisted out of the main iterations."""
    return replace(func, body=_partition(func.body))


def _partition(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For) and stmt.kind not in ("vectorize", "unroll"):
        guard = next(_guards(stmt), None)
        if guard is not None:
            return _cut(stmt, *guard)
    return map_stmt(stmt, _partition)


def _guards(loop: For) -> Iterator[tuple[Expr, Expr]]:
    """Guards `a < b` that grow with the loop, and for how many iterations they surely hold."""
    for path, stmt in statements(loop.body):
        around = [s for s in (*path, stmt) if isinstance(s, For)]
        vectors = {s.name for s in around if s.kind == "vectorize"}
        if not vectors:
            continue
        inner = {s.name: s.extent for s in around}
        for condition in _conditions(stmt):
            if free_vars(condition) & vectors:
                main = _main_extent(loop, condition, inner)
                if main is not None:
                    yield condition, main


def _conditions(stmt: Stmt) -> Iterator[Expr]:
    """The conditions under which a statement, or a load or choice in it, does something."""
    if isinstance(stmt, If):
        yield from conjuncts(stmt.cond)
    for root in own_expressions(stmt):
        for e in subexpressions(root):
            if isinstance(e, Load) and e.mask is not None:
                yield from conjuncts(e.mask)
            elif isinstance(e, Select):
                yield from conjuncts(e.cond)


def _main_extent(loop: For, condition: Expr, inner: Extents) -> Expr | None:
    """How many iterations from the first on satisfy `condition` whatever the inner loops do."""
    if not _is_index_guard(condition):
        return None
    rest = simplify(condition.a - condition.b)
    step = stride_of(rest, loop.name)
    if not step or step < 0:
        return None
    rest = simplify(rest - Var(loop.name) * step)
    if loop.name in free_vars(rest):
        return None
    greatest = upper(rest, inner)
    if greatest is None or free_vars(greatest) & set(inner):
        return None
    return simplify((step - 1 - greatest) // step)


def _is_index_guard(condition: Expr) -> TypeGuard[Binary]:
    """Whether `condition` is `a < b` of indices, the same whenever it is computed."""
    if not isinstance(condition, Binary) or condition.op != "lt":
        return False
    return condition.a.dtype == I64 and next(loads(condition), None) is None


def _cut(loop: For, condition: Expr, main: Expr) -> Stmt:
    count = main if prove(const(0) <= main) else maximum(main, const(0))
    count = simplify(count if prove(count <= loop.extent) else minimum(count, loop.extent))
    first = For(loop.name, count, loop.kind, _without(loop.body, condition), loop.annotations)
    rest = simplify(loop.extent - count)
    if as_int(rest) == 0:
        return _partition(first)
    name = f"{loop.name}.tail"
    moved = _renamed(substitute_stmt(loop.body, {loop.name: count + Var(name)}))
    tail = For(name, rest, "serial" if loop.kind == "parallel" else loop.kind, moved)
    if as_int(count) == 0:
        return map_stmt(tail, _partition)
    return seq(_partition(first), tail)


def _renamed(stmt: Stmt) -> Stmt:
    """The copy's loops get names of their own."""
    names = {s.name: f"{s.name}.tail" for _, s in statements(stmt) if isinstance(s, For)}

    def rename(s: Stmt) -> Stmt | None:
        return replace(s, name=names[s.name]) if isinstance(s, For) else None

    copied = substitute_stmt(stmt, {old: Var(new) for old, new in names.items()})
    return rewrite_stmts(copied, rename)


def _without(stmt: Stmt, condition: Expr) -> Stmt:
    """`stmt` where `condition` is known to hold."""

    def known(e: Expr) -> Expr:
        return rewrite(e, lambda x: TRUE if x is condition else None)

    def drop(s: Stmt) -> Stmt | None:
        return s.then if isinstance(s, If) and s.cond is TRUE else None

    return rewrite_stmts(map_exprs(stmt, known), drop)
