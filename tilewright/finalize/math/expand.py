"""`expand_math`: every call that has an expansion becomes primitive arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith.expr import Call, Expr, cast
from tilewright.arith.walk import rewrite
from tilewright.core.dtypes import BOOL, F16, F32
from tilewright.finalize.math.table import EXPANSIONS, Expansion

Table = Mapping[tuple[str, str], Expansion]


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


def expand_math(e: Expr, memo: dict[Expr, Expr] | None = None, table: Table = EXPANSIONS) -> Expr:
    """`e` with the functions of `table` written out; `memo` as in `arith.walk.rewrite`.

    exp(x)  -->  a polynomial of `fma`s, times a power of two made with a shift
    """
    return rewrite(e, lambda x: _expanded(x, table), memo)
