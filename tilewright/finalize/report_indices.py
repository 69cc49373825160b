"""Checked indices → statements that write an index outside its dimension to the caller's words.

    for i in serial(N) {                                  for i in serial(N) {
      for j in serial(D) {                                  if (x[i] < 0) | (V <= x[i]) {
        y[..] = data[clamp(check(x[i], 0, V, 0)) * D + j] →   index_status[1] = V
      }                                                       index_status[0] = x[i]
    }                                                       }
                                                            for j in serial(D) { y[..] = ... }
                                                          }

The words of a check are the index and the size. The index is 0 unless the check has failed: only
dimensions without elements lack an index 0, and no kernel runs on those. Every access stays
clamped, so the kernel goes on; who runs it reads the words afterwards. A check stands outside of
the serial loops that it does not depend on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

from tilewright.arith.checked_index import CheckedIndex
from tilewright.arith.expr import TRUE, Expr, Load, binary, const
from tilewright.arith.vector import Lane
from tilewright.arith.walk import contains, free_vars, loads, operands, rewrite, subexpressions
from tilewright.core.dtypes import I64
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, If, Let, Roles, Seq, Stmt, Store
from tilewright.ir.loop.walk import expressions, map_stmt, own_expressions, seq

STATUS = "index_status"
"""The parameter of a kernel that has two words for each of its checks."""

# Loops that a check need not run in: the statements of others belong to a thread each.
_LEFT = ("serial", "unroll")


@dataclass(frozen=True)
class _Report:
    """A check as a statement: where `outside` holds, index and size go to the words of its site."""

    site: int
    index: Expr
    size: Expr
    outside: Expr

    @property
    def statement(self) -> Stmt:
        if self.outside.lanes == 1:
            word = 2 * self.site
            size = Store(STATUS, (const(word + 1),), self.size)
            return If(self.outside, Seq((size, Store(STATUS, (const(word),), self.index))))
        lanes = range(self.outside.lanes)
        each = [
            _Report(self.site, *(_lane(e, k) for e in (self.index, self.size, self.outside)))
            for k in lanes
        ]
        some = reduce(lambda a, b: binary("or", a, b), (report.outside for report in each))
        return If(some, seq(*(report.statement for report in each)))


def _lane(e: Expr, number: int) -> Expr:
    return e if e.lanes == 1 else Lane(e, number)


def report_indices(func: Func) -> Func:
    """The function with a statement for each check, and a parameter for what they report."""
    sites = {
        x.site
        for e in expressions(func.body)
        if contains(e, CheckedIndex)
        for x in subexpressions(e)
        if isinstance(x, CheckedIndex)
    }
    if not sites:
        return func
    words = Buffer(STATUS, I64, (const(2 + 2 * max(sites)),))
    inputs = {p.name for p in func.params} - set(func.outputs)
    body, left = _Placer(inputs).place(func.body)
    params, outputs = (*func.params, words), (*func.outputs, STATUS)
    return replace(func, params=params, outputs=outputs, body=_behind(left, body))


class _Placer:
    """Takes the checks out of expressions; `inputs` are the buffers that nobody writes."""

    def __init__(self, inputs: set[str]) -> None:
        self.inputs = inputs

    def place(self, s: Stmt) -> tuple[Stmt, list[_Report]]:
        """The statement with the checks that must stand in it, and those that may stand before."""
        match s:
            case Seq(stmts):
                parts = [self.place(x) for x in stmts]
                return Seq(tuple(x for x, _ in parts)), [r for _, found in parts for r in found]
            case For(name, _, kind, body):
                inner, found = self.place(body)
                out = [r for r in found if kind in _LEFT and name not in free_vars(r.outside)]
                return replace(s, body=_behind([r for r in found if r not in out], inner)), out
            case If(cond, then, orelse):
                other = None if orelse is None else self._inside(orelse)
                return self._leaf(If(cond, self._inside(then), other))
            case Let(name, _, body):
                inner, found = self.place(body)
                out = [r for r in found if name not in free_vars(r.outside)]
                return replace(s, body=_behind([r for r in found if r not in out], inner)), out
            case Roles(roles):
                return Roles(tuple(replace(r, body=self._inside(r.body)) for r in roles)), []
            case Alloc(_, body):
                inner, found = self.place(body)
                return replace(s, body=inner), found
        return self._leaf(s)

    def _inside(self, s: Stmt) -> Stmt:
        """The statement behind all of its checks."""
        inner, found = self.place(s)
        return _behind(found, inner)

    def _leaf(self, s: Stmt) -> tuple[Stmt, list[_Report]]:
        found = _reports(own_expressions(s))
        out = [r for r in found if all(x.buffer in self.inputs for x in loads(r.outside))]
        here = [r for r in found if r not in out]
        return _behind(here, map_stmt(s, f_expr=_unchecked)), out


def _behind(reports: Iterable[_Report], s: Stmt) -> Stmt:
    """A statement with checks before it, each once."""
    return seq(*(report.statement for report in dict.fromkeys(reports)), s)


def _reports(roots: Iterable[Expr]) -> list[_Report]:
    """The checks in expressions, each where the masks of the loads around it hold."""
    found: dict[_Report, None] = {}
    left: list[tuple[Expr, Expr]] = [(e, TRUE) for e in roots]
    seen = set(left)
    while left:
        e, mask = left.pop()
        if isinstance(e, CheckedIndex):
            found[_report(e, mask)] = None
        new = [pair for pair in _operands(e, mask) if pair not in seen]
        seen.update(new)
        left += new
    return list(found)


def _operands(e: Expr, mask: Expr) -> list[tuple[Expr, Expr]]:
    """The operands of an expression, each with the mask under which it is used."""
    if not isinstance(e, Load) or e.mask is None:
        return [(x, mask) for x in operands(e)]
    return [(e.mask, mask), *((i, mask & _unchecked(e.mask)) for i in e.indices)]


def _report(e: CheckedIndex, mask: Expr) -> _Report:
    index = _unchecked(e.index)
    masks = [mask, *(_unchecked(x.mask) for x in loads(index) if x.mask is not None)]
    # A mask of lanes is no matter of an index that all of them share.
    holds = [m for m in masks if m.lanes in (1, index.lanes)]
    outside = reduce(lambda a, b: binary("and", a, b), holds, _unchecked(e.is_outside))
    return _Report(e.site, index, e.size, outside)


def _unchecked(e: Expr) -> Expr:
    return rewrite(e, lambda x: x.index if isinstance(x, CheckedIndex) else None)
