"""Blocks → their bodies, with iterators replaced by what they are bound to.

    block "C" [vi: S(M) = i] where i < M { C[vi] = A[vi] }   →   if i < M { C[i] = A[i] }

The `init` of a reduction that no schedule has taken out runs where all reduction iterators are 0.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import TRUE, Expr, const
from tilewright.ir.loop.nodes import Block, Func, If, Stmt
from tilewright.ir.loop.walk import rewrite_stmts, seq, substitute_stmt


def lower_blocks(func: Func) -> Func:
    """`func` without blocks."""
    return replace(func, body=rewrite_stmts(func.body, _lower))


def _lower(stmt: Stmt) -> Stmt | None:
    if not isinstance(stmt, Block):
        return None
    bindings = {it.name: it.binding for it in stmt.iters}
    body = substitute_stmt(stmt.body, bindings)
    if stmt.init is not None:
        first: Expr = TRUE
        for it in stmt.iters:
            if it.kind == "R":
                first = first & it.binding.eq(const(0))
        body = seq(_guard(first, substitute_stmt(stmt.init, bindings)), body)
    return _guard(stmt.predicate, body)


def _guard(condition: Expr, body: Stmt) -> Stmt:
    return body if condition is TRUE else If(condition, body)
