"""`expand-math`: every call that has an expansion becomes the arithmetic that computes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.arith.expr import Call, Expr, cast
from tilewright.arith.walk import contains, rewrite
from tilewright.core.dtypes import BOOL, F16, F32
from tilewright.finalize.math.table import EXPANSIONS, Expansion
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import map_exprs

Table = Mapping[tuple[str, str], Expansion]


def expand_math(func: Func, table: Table = EXPANSIONS) -> Func:
    """`func` with every call that has an expansion in `table` expanded."""
    memo: dict[Expr, Expr] = {}
    return replace(func, body=map_exprs(func.body, lambda e: expand_calls(e, memo, table)))


def expand_calls(e: Expr, memo: dict[Expr, Expr] | None = None, table: Table = EXPANSIONS) -> Expr:
    """`e` with the functions of `table` expanded; `memo` as in `arith.walk.rewrite`.

    exp(x)  -->  a polynomial of `fma`s, times a power of two made with a shift
    """
    return rewrite(e, lambda x: _expanded(x, table), memo) if contains(e, Call) else e


def _expanded(e: Expr, table: Table) -> Expr | None:
    if not isinstance(e, Call):
        return None
    dtype = e.args[0].dtype
    direct = table.get((e.fn, dtype.name))
    if direct is not None:
        return direct(*e.args)
    wide = table.get((e.fn, F32.name))
    if not (dtype == F16 or dtype.is_storage) or wide is None:
        return None
    result = wide(*(cast(F32, a) for a in e.args))
    return result if e.dtype == BOOL else cast(e.dtype, result)
