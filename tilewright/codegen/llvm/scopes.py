"""The scopes of a function under construction: where instructions go, what is known there.

    loop i {                      a = n * 4
      loop j {              →     loop i {
        x[i * (n * 4) + j]          b = i * a
      }                             loop j { x[b + j] }
    }                             }

An expression that reads no memory is computed in the outermost scope that has its variables, once
for all scopes inside. LLVM would find that out as well, from many times the text, and not for
quotients by sizes: those it does not take to where they might not be needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.arith.expr import Binary, Cast, Const, Expr, Select, Unary, Var
from tilewright.arith.operators import DIVISIONS
from tilewright.arith.walk import free_vars, operands


@dataclass
class Scope:
    """The lines of a scope, and the expressions that are known from then on until it ends.

    `cheap` is the outermost scope to which an instruction from here may go that may run in vain,
    `costly` that for all others.
    """

    lines: list[str]
    cheap: int
    costly: int
    known: list[Expr] = field(default_factory=list)


class CheapExpressions:
    """Whether expressions may be computed in vain: a few instructions on scalars."""

    def __init__(self) -> None:
        self._known: dict[Expr, bool] = {}

    def __contains__(self, e: Expr) -> bool:
        found = self._known.get(e)
        if found is None:
            found = self._known[e] = _is_cheap(e) and all(part in self for part in operands(e))
        return found


def _is_cheap(e: Expr) -> bool:
    if e.lanes > 1 or e.dtype.is_float:
        return False
    if isinstance(e, Binary) and e.op in DIVISIONS:
        return isinstance(e.b, Const)
    return isinstance(e, Binary | Unary | Select | Cast | Var | Const)


def depth_of(e: Expr, depths: Mapping[str, int]) -> int:
    """The innermost scope that has a variable of `e`."""
    return max((depths.get(name, 0) for name in free_vars(e)), default=0)
