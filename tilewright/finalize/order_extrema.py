"""Maxima and minima of floats as choices, where no instruction keeps a NaN.

    max(x, 0.0)   →   select(x < 0.0, 0.0, x)                  a NaN is not below anything
    max(m, x)     →   select((m < x) | (x != x), x, m)

Of a pair with a constant, x86 computes the choice with its own maximum: one instruction instead of
three, and four instead of six for a pair of variables. Of two zeros either may be the result.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Binary, Broadcast, Const, Expr, select
from tilewright.arith.walk import rewrite
from tilewright.core.dtypes import F32, F64
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import map_exprs
from tilewright.target.cpu import Target


def order_extrema(func: Func, target: Target) -> Func:
    """`func` with maxima and minima of floats written as choices, where that is faster."""
    if target.keeps_nan:
        return func
    memo: dict[Expr, Expr] = {}
    return replace(func, body=map_exprs(func.body, lambda e: rewrite(e, _chosen, memo)))


def _chosen(e: Expr) -> Expr | None:
    if not isinstance(e, Binary) or e.op not in ("min", "max") or e.dtype not in (F32, F64):
        return None
    a, b = (e.b, e.a) if _is_number(e.a) else (e.a, e.b)
    beyond = a < b if e.op == "max" else b < a
    return select(beyond if _is_number(b) else beyond | b.ne(b), b, a)


def _is_number(e: Expr) -> bool:
    """Whether an operand is a constant and no NaN."""
    value = e.a if isinstance(e, Broadcast) else e
    return isinstance(value, Const) and value.value == value.value
