"""Dimensions that a graph's checks make equal, rewritten to one form.

    (D + 15) // 16 == (D + 31) // 32 * 2        every (D + 15) // 16 is written (D + 31) // 32 * 2

Kernels over sizes that are spelt alike are found to run over the same elements, and a multiple of a
size is known to be one. A check replaces the side that is a single size or quotient by the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

from tilewright.arith.expr import Binary, Const, Expr, Select, Var
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, rewrite, subexpressions
from tilewright.ir.graph.dims import map_exprs
from tilewright.ir.graph.nodes import Check
from tilewright.ops.shape.assumptions import definition_order, simpler

T = TypeVar("T")
# Replacements may free the way for others; a few rounds find them all.
MAX_ROUNDS = 4


class DimEqualities:
    """What to write for sizes."""

    def __init__(self, checks: Iterable[Check] = ()) -> None:
        self._to: dict[Expr, Expr] = {}
        self._names: set[str] = set()
        for check in checks:
            self.add(check.condition)

    def add(self, condition: Expr) -> None:
        """Take a condition into account; only equalities matter."""
        if not isinstance(condition, Binary) or condition.op != "eq":
            return
        pair = self._directed(self.expr(condition.a), self.expr(condition.b))
        if pair is not None and pair[0] is not pair[1]:
            self._to[pair[0]] = pair[1]
            self._names |= free_vars(pair[0])

    def _directed(self, a: Expr, b: Expr) -> tuple[Expr, Expr] | None:
        """What is replaced, and by what; `None` if neither side can be."""
        if isinstance(a, Const) or isinstance(b, Const):
            a, b = (b, a) if isinstance(a, Const) else (a, b)
            return (a, b) if _is_single(a) else None
        # a size must not be spelt by one that is not known yet
        pairs = [(x, y) for x, y in ((a, b), (b, a)) if definition_order(y) <= definition_order(x)]
        # nor by one that it is part of: there would be no end to it
        movable = [(x, y) for x, y in pairs if _is_single(x) and x not in subexpressions(y)]
        if len(movable) == 2:
            return (b, a) if simpler(a, b) is a else (a, b)
        return movable[0] if movable else None

    def before(self, sizes: Collection[str]) -> DimEqualities:
        """What holds before these data-dependent dimensions are known: nothing said of them.

        A node that gives a size has no type that a check of this size promises, since that is
        made after the node has run; memory is planned for what it may write until then.
        """
        if self._names.isdisjoint(sizes):
            return self
        result = DimEqualities()
        result._to = {a: b for a, b in self._to.items() if free_vars(a).isdisjoint(sizes)}
        result._names = {name for a in result._to for name in free_vars(a)}
        return result

    def expr(self, e: Expr) -> Expr:
        """A size in its one spelling."""
        if not self._to or self._names.isdisjoint(free_vars(e)):
            return e
        for _ in range(MAX_ROUNDS):
            result = simplify(rewrite(e, self._to.get))
            if result is e:
                break
            e = result
        return e

    def of(self, value: T) -> T:
        """A type, attributes or a tuple of them, with every size in its one spelling."""
        return map_exprs(value, self.expr) if self._to else value


def _is_single(e: Expr) -> bool:
    """Whether a size is no sum or product of others."""
    quotient = isinstance(e, Binary) and e.op in ("floordiv", "mod", "min", "max")
    return quotient or isinstance(e, Var | Select)
