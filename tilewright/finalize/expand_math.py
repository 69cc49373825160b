"""Mathematical functions → the arithmetic that computes them; see `finalize/math`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.arith.expr import Expr
from tilewright.finalize.math.expand import expand_math
from tilewright.finalize.math.table import EXPANSIONS, Expansion
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import map_exprs


def expand_functions(func: Func, table: Mapping[tuple[str, str], Expansion] = EXPANSIONS) -> Func:
    """`func` with every call that has an expansion in `table` expanded."""
    memo: dict[Expr, Expr] = {}
    return replace(func, body=map_exprs(func.body, lambda e: expand_math(e, memo, table)))
