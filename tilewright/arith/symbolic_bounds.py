"""Upper bounds of sizes that depend on unknown sizes, each between 0 and a limit.

    most(n * 4, {"n": N})                N * 4
    most(min(n, N - n), {"n": N})        N
    most(n * (N // n), {"n": N})         N

A size need not be monotonic in an unknown one, so inserting the limit is not enough. The bounds are
sound, not always tight. Other names are sizes of at least 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.arith.affine import factors
from tilewright.arith.bounds import NATURAL, Bounds, Interval, upper
from tilewright.arith.expr import Binary, Const, Expr, Select, Unary, Var, const, maximum, minimum
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars


def most(e: Expr, limits: Mapping[str, Expr]) -> Expr | None:
    """An upper bound of `e` as an expression of the other sizes; None if none is found."""
    found = upper(e, {name: limit + 1 for name, limit in limits.items()})
    if found is None:
        found = _Ends(limits).of(e, greatest=True)
    return None if found is None else simplify(found)


class _Ends:
    """The greatest and least values of expressions, part by part."""

    def __init__(self, limits: Mapping[str, Expr]) -> None:
        self.limits = limits
        sizes = Bounds({}, NATURAL)
        ranges = {name: Interval(0, sizes.of(limit).hi) for name, limit in limits.items()}
        self.numeric = Bounds(ranges, NATURAL)

    def of(self, e: Expr, greatest: bool) -> Expr | None:
        """One end of what `e` can be."""
        if free_vars(e).isdisjoint(self.limits):
            return e
        rule = _RULES.get(e.op if isinstance(e, Binary | Unary) else type(e))
        found = rule(self, e, greatest) if rule is not None else None
        if found is not None:
            return found
        low, high = self.numeric.of(e)
        known = high if greatest else low
        return None if known is None else const(known)

    def positive(self, e: Expr) -> Expr | None:
        """The upper bound of `e`, at least 0."""
        found = self.of(e, True)
        return None if found is None else maximum(found, const(0))

    def is_natural(self, e: Expr) -> bool:
        """Whether `e` is never less than 0."""
        low = self.numeric.of(e).lo
        return low is not None and low >= 0


def _variable(ends: _Ends, e: Var, greatest: bool) -> Expr | None:
    return ends.limits[e.name] if greatest else const(0)


def _either(ends: _Ends, e: Select, greatest: bool) -> Expr | None:
    a, b = ends.of(e.a, greatest), ends.of(e.b, greatest)
    return None if a is None or b is None else (maximum if greatest else minimum)(a, b)


def _negated(ends: _Ends, e: Unary, greatest: bool) -> Expr | None:
    a = ends.of(e.a, not greatest)
    return None if a is None else const(0) - a


def _same_end(ends: _Ends, e: Binary, greatest: bool) -> Expr | None:
    """A sum, or the lesser or greater of two."""
    a, b = ends.of(e.a, greatest), ends.of(e.b, greatest)
    return None if a is None or b is None else Binary(e.op, a, b)


def _difference(ends: _Ends, e: Binary, greatest: bool) -> Expr | None:
    a, b = ends.of(e.a, greatest), ends.of(e.b, not greatest)
    return None if a is None or b is None else a - b


def _product(ends: _Ends, e: Binary, greatest: bool) -> Expr | None:
    parts = [*factors(e)]
    numbers = [p for p in parts if isinstance(p, Const)]
    parts = _cancelled(ends, [p for p in parts if not isinstance(p, Const)])
    sign = 1
    for number in numbers:
        sign *= -1 if number.value < 0 else 1
    if sum(not ends.is_natural(p) for p in parts) > 1 or greatest != (sign > 0):
        return None
    result: Expr = const(1)
    for number in numbers:
        result = result * number
    for part in parts:
        # a part that may be negative makes the product so at most once
        end = ends.positive(part)
        if end is None:
            return None
        result = result * end
    return result


def _cancelled(ends: _Ends, parts: list[Expr]) -> list[Expr]:
    """Factors without those that are divided by another: `n * (N // n)` is at most `N`."""
    for quotient in parts:
        if not isinstance(quotient, Binary) or quotient.op not in ("floordiv", "div"):
            continue
        rest = [p for p in parts if p is not quotient]
        if quotient.b in rest and ends.is_natural(quotient.a) and ends.is_natural(quotient.b):
            rest.remove(quotient.b)
            return _cancelled(ends, [*rest, quotient.a])
    return parts


def _quotient(ends: _Ends, e: Binary, greatest: bool) -> Expr | None:
    a = ends.positive(e.a)
    if not greatest or a is None or not ends.is_natural(e.b):
        return None
    late = not free_vars(e.b).isdisjoint(ends.limits)
    return a if late else a // e.b


def _modulo(ends: _Ends, e: Binary, greatest: bool) -> Expr | None:
    """The result has the divisor's sign."""
    return ends.positive(e.b - 1) if greatest else None


def _remainder(ends: _Ends, e: Binary, greatest: bool) -> Expr | None:
    """The result has the dividend's sign."""
    return ends.positive(e.a) if greatest else None


_RULES: dict[str | type, Callable[[_Ends, Any, bool], Expr | None]] = {
    Var: _variable,
    Select: _either,
    "neg": _negated,
    "add": _same_end,
    "sub": _difference,
    "min": _same_end,
    "max": _same_end,
    "mul": _product,
    "floordiv": _quotient,
    "div": _quotient,
    "mod": _modulo,
    "rem": _remainder,
}
