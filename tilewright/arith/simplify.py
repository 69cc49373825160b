"""Simplification of expressions under the ranges of their loop variables.

    simplify((i * 8 + j) // 8, {"j": 8})      i
    prove(i * 8 + j < N, {"i": N // 8, "j": 8})      True

`extents` gives the extent of each loop variable, which runs from 0 to extent - 1; any other name is
a symbolic size of at least 0. Sums become linear forms with their terms in canonical order,
divisions are split over multiples, comparisons, `min` and `max` are decided by bounds; all other
expressions, elements included, are rewritten by the tables of `rules`. Index arithmetic (`i64`
without loads or casts in it) is assumed not to overflow; nothing is assumed about element
arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.arith import compare
from tilewright.arith.affine import (
    MAX_PRODUCT_TERMS,
    Affine,
    from_affine,
    product_atom,
    single,
    text_key,
    to_affine,
)
from tilewright.arith.bounds import upper
from tilewright.arith.division import Division, recombine
from tilewright.arith.expr import (
    FALSE,
    TRUE,
    Binary,
    Const,
    Expr,
    Reduce,
    Select,
    Unary,
    Var,
    binary,
    const,
    unary,
)
from tilewright.arith.memo import Memo
from tilewright.arith.prove import Prover
from tilewright.arith.rules import ELEMENT
from tilewright.arith.vector import Ramp
from tilewright.arith.walk import free_vars, map_children
from tilewright.core.dtypes import BOOL, I64

Extents = Mapping[str, Expr]
NO_EXTENTS: Extents = {}

# Rounds of simplification until the fixed point; more were never needed.
MAX_ROUNDS = 4
# Beyond so many operands, `min`, `max`, `and` and `or` are not compared each with each.
MAX_OPERANDS = 8


def simplify(e: Expr, extents: Extents | None = None) -> Expr:
    """An expression equal to `e` for all values in range, canonical and at most as costly."""
    if type(e) is Const or (type(e) is Var and (extents is None or e.name not in extents)):
        return e
    return _simplifier(e, extents or NO_EXTENTS).run(e)


def prove(cond: Expr, extents: Extents | None = None) -> bool:
    """Whether `cond` certainly holds for all values in range; False also means "not known"."""
    return simplify(cond, extents) is TRUE


def prove_less(a: Expr, b: Expr, extents: Extents) -> bool:
    """Whether `a < b` is certain, where each variable of `extents` runs from 0.

    Stronger than `prove(a < b)`: where that fails, `a` is first replaced by an upper bound. A bound
    that contains a division may then cancel as a whole, above all where the variables of `b` itself
    are left alone.
    """
    if prove(a < b, extents):
        return True
    own = {name: extent for name, extent in extents.items() if name not in free_vars(b)}
    bounds = (upper(a, known) for known in (own, extents))
    return any(bound is not None and prove(bound < b, extents) for bound in bounds)


_SIMPLIFIERS: Memo[frozenset[tuple[str, Expr]], Simplifier] = Memo()
MAX_SIMPLIFIERS = 4000


def _simplifier(e: Expr, extents: Extents) -> Simplifier:
    """The cached simplifier for the extents that occur in `e`."""
    names = {name for name in free_vars(e) if name in extents} if extents else set()
    for name in tuple(names):
        # The extent of an inner loop may depend on an outer variable.
        names.update(other for other in free_vars(extents[name]) if other in extents)
    key = frozenset([(name, extents[name]) for name in names])
    found = _SIMPLIFIERS.get(key)
    if found is None:
        if len(_SIMPLIFIERS) >= MAX_SIMPLIFIERS:
            _SIMPLIFIERS.clear()
        found = _SIMPLIFIERS.keep(key, Simplifier(dict(key)))
    return found


class Simplifier:
    """Simplifies expressions under fixed extents, with a memo of all subexpressions."""

    def __init__(self, extents: dict[str, Expr]) -> None:
        outer = {name: e for name, e in extents.items() if free_vars(e).isdisjoint(extents)}
        self.extents = {
            name: simplify(e, NO_EXTENTS if name in outer else outer) for name, e in extents.items()
        }
        self.prover = Prover(self.extents)
        self.division = Division(self.prover)
        self._memo: Memo[Expr, Expr] = Memo()
        self._forms: Memo[Expr, Affine] = Memo()
        self._whole: Memo[frozenset[tuple[Expr, int]], Affine] = Memo()

    def run(self, e: Expr) -> Expr:
        """`e` simplified to a fixed point."""
        for _ in range(MAX_ROUNDS):
            result = self.once(e)
            if result is e:
                break
            e = result
        return e

    def once(self, e: Expr) -> Expr:
        """`e` simplified in one pass from its leaves to its root."""
        found = self._memo.get(e)
        if found is None:
            found = self._memo.keep(e, _BY_CLASS.get(type(e), _children)(e, self))
        return found

    def form(self, e: Expr) -> Affine:
        """The linear form of an index expression, its atoms simplified."""
        found = self._forms.get(e)
        return found if found is not None else self._forms.keep(e, _form(e, self))

    def whole_form(self, e: Expr) -> Affine:
        """The same with quotients and remainders joined; a constant has no part in that."""
        form = self.form(e)
        if not any(isinstance(atom, Binary) for atom in form.coeffs):
            return form
        key = frozenset(form.coeffs.items())
        whole = self._whole.get(key)
        if whole is None:
            whole = self._whole.keep(key, recombine(Affine(form.coeffs, 0), self.division))
        return whole.shift(form.constant)

    def by_rules(self, e: Expr) -> Expr:
        """`e` after the tables of `rules`, tried at its root."""
        found = ELEMENT.rewrite_root(e)
        return e if found is None else self.once(found)


def is_index(e: Expr) -> bool:
    """Whether the value of `e` is computed without loads, casts and functions: no overflow."""
    if e.dtype != I64 or isinstance(e, Ramp):
        return False
    return _is_index(e)


def _is_index(e: Expr) -> bool:
    found = _INDEX.get(e)
    return found if found is not None else _INDEX.keep(e, _find_index(e))


_INDEX: Memo[Expr, bool] = Memo()


def _find_index(e: Expr) -> bool:
    if isinstance(e, Const | Var):
        return e.dtype == I64
    if isinstance(e, Binary | Select):
        return _is_index(e.a) and _is_index(e.b)
    return isinstance(e, Unary) and _is_index(e.a)


def _children(e: Expr, s: Simplifier) -> Expr:
    return s.by_rules(map_children(e, s.once))


def _variable(e: Var, s: Simplifier) -> Expr:
    extent = s.extents.get(e.name)
    return const(0) if isinstance(extent, Const) and extent.value == 1 else e


def _reduce(e: Reduce, s: Simplifier) -> Expr:
    axes = tuple((v, s.once(n)) for v, n in e.axes)
    inner = {**s.extents, **{v.name: n for v, n in axes}}
    return Reduce(e.op, axes, simplify(e.body, inner))


def _unary(e: Unary, s: Simplifier) -> Expr:
    if e.op == "neg" and is_index(e):
        return from_affine(s.whole_form(e))
    a = s.once(e.a)
    if e.op == "not" and isinstance(a, Binary) and a.op in _OPPOSITE and is_index(a.a):
        return _compare(_OPPOSITE[a.op](a), s)
    return s.by_rules(unary(e.op, a))


_OPPOSITE: dict[str, Callable[[Binary], Binary]] = {
    "lt": lambda e: Binary("le", e.b, e.a),
    "le": lambda e: Binary("lt", e.b, e.a),
    "eq": lambda e: Binary("ne", e.a, e.b),
    "ne": lambda e: Binary("eq", e.a, e.b),
}


def _binary(e: Binary, s: Simplifier) -> Expr:
    rule = _INDEX_RULES.get(e.op)
    if rule is not None and is_index(e.a) and is_index(e.b):
        return rule(e, s)
    rebuilt = binary(e.op, s.once(e.a), s.once(e.b))
    if not isinstance(rebuilt, Binary):
        return rebuilt
    if rebuilt.op in ("and", "or") and rebuilt.dtype == BOOL:
        return _logic(rebuilt, s)
    if rebuilt.op in _RING and rebuilt.dtype == I64 and rebuilt.lanes == 1:
        return _wrapping_sum(rebuilt)
    return s.by_rules(rebuilt)


def _form(e: Expr, s: Simplifier) -> Affine:
    if isinstance(e, Binary):
        rule = _FORMS.get(e.op)
        if rule is not None:
            return rule(e, s)
    elif isinstance(e, Unary) and e.op == "neg":
        return -s.form(e.a)
    return to_affine(s.once(e))


def _product(e: Binary, s: Simplifier) -> Affine:
    a, b = s.form(e.a), s.form(e.b)
    if len(a.coeffs) * len(b.coeffs) <= MAX_PRODUCT_TERMS:
        return a * b
    return single(product_atom((from_affine(a), from_affine(b))))


_RING = ("add", "sub", "mul")
_FORMS: dict[str, Callable[[Binary, Simplifier], Affine]] = {
    "add": lambda e, s: s.form(e.a) + s.form(e.b),
    "sub": lambda e, s: s.form(e.a) - s.form(e.b),
    "mul": _product,
    "floordiv": lambda e, s: s.division.quotient(s.whole_form(e.a), s.whole_form(e.b)),
    "mod": lambda e, s: s.division.rest(s.whole_form(e.a), s.whole_form(e.b)),
}


def _wrapping_sum(e: Binary) -> Expr:
    """Sums and products have one canonical form even where they wrap, if its numbers fit."""
    form = to_affine(e)
    fits = all(abs(c) < 1 << 62 for c in (form.constant, *form.coeffs.values()))
    return from_affine(form) if fits else e


def _compare(e: Binary, s: Simplifier) -> Expr:
    difference = s.form(e.b) - s.form(e.a)
    if e.op in ("eq", "ne"):
        return compare.equal(difference, s.division, e.op == "eq")
    return compare.less(difference.shift(e.op == "le"), s.division)


def _extremum(e: Binary, s: Simplifier) -> Expr:
    """`min` or `max` without the operands that another one bounds."""
    kept: list[Expr] = []
    for operand in _flatten(e.op, e):
        for value in _flatten(e.op, s.once(operand)):
            _keep_best(e.op, kept, value, s)
    kept.sort(key=lambda operand: (isinstance(operand, Const), text_key(operand)))
    result = kept[0]
    for operand in kept[1:]:
        result = binary(e.op, result, operand)
    return result


def _keep_best(op: str, kept: list[Expr], new: Expr, s: Simplifier) -> None:
    if len(kept) >= MAX_OPERANDS:
        kept.append(new)
        return
    form = to_affine(new).scale(1 if op == "min" else -1)
    for n, old in enumerate(kept):
        gap = form - to_affine(old).scale(1 if op == "min" else -1)
        if s.prover.nonneg(gap):
            return
        if s.prover.nonneg(-gap):
            del kept[n]
            _keep_best(op, kept, new, s)
            return
    kept.append(new)


def _flatten(op: str, e: Expr) -> list[Expr]:
    if isinstance(e, Binary) and e.op == op:
        return _flatten(op, e.a) + _flatten(op, e.b)
    return [e]


def _logic(e: Binary, s: Simplifier) -> Expr:
    """`and` or `or` without operands that follow from others, or contradict them."""
    kept: list[Expr] = []
    for operand in dict.fromkeys(_flatten(e.op, e)):
        if not _keep_condition(e.op, kept, operand):
            return FALSE if e.op == "and" else TRUE
    result = kept[0]
    for operand in kept[1:]:
        result = Binary(e.op, result, operand)
    return s.by_rules(result)


def _keep_condition(op: str, kept: list[Expr], new: Expr) -> bool:
    """Add `new` to `kept`; False where together they decide the whole."""
    if len(kept) >= MAX_OPERANDS:
        kept.append(new)
        return True
    for n, old in enumerate(kept):
        relation = _relation(op, old, new)
        if relation == "opposite":
            return False
        if relation in ("follows", "implies"):
            # `and` keeps the stronger of two, `or` the weaker.
            if (relation == "implies") == (op == "and"):
                kept[n] = new
            return True
    kept.append(new)
    return True


def _relation(op: str, old: Expr, new: Expr) -> str:
    """How two comparisons that differ by a number relate, as seen from `new`."""
    if _is_negation(old, new) or _is_negation(new, old):
        return "opposite"
    a, b = _positive_form(old), _positive_form(new)
    if a is None or b is None:
        return ""
    if a.coeffs == b.coeffs:
        return "follows" if b.constant >= a.constant else "implies"
    total = a + b
    if total.coeffs:
        return ""
    # Both above 0 make at least 2, neither makes at most 0.
    decided = total.constant <= 1 if op == "and" else total.constant >= 1
    return "opposite" if decided else ""


def _is_negation(a: Expr, b: Expr) -> bool:
    return isinstance(a, Unary) and a.op == "not" and a.a is b


def _positive_form(e: Expr) -> Affine | None:
    """The form that is above 0 where the comparison holds."""
    if isinstance(e, Binary) and e.op == "lt" and is_index(e.a) and is_index(e.b):
        return to_affine(e.b) - to_affine(e.a)
    return None


_INDEX_RULES: dict[str, Callable[[Binary, Simplifier], Expr]] = {
    **dict.fromkeys(_FORMS, lambda e, s: from_affine(s.whole_form(e))),
    **dict.fromkeys(("lt", "le", "eq", "ne"), _compare),
    **dict.fromkeys(("min", "max"), _extremum),
}

_BY_CLASS: dict[type, Callable[[Any, Simplifier], Expr]] = {
    Const: lambda e, s: e,
    Var: _variable,
    Binary: _binary,
    Unary: _unary,
    Reduce: _reduce,
}
