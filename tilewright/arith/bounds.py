"""Bounds of index expressions: as numbers, or as expressions over symbolic sizes.

    bound(i * 8 + j, {"i": Interval(0, 3), "j": Interval(0, 7)})      Interval(0, 31)
    upper(i * W + j, {"i": H, "j": W})                                H * W - 1

All bounds are sound. They are tight where the expression is linear in independent variables, and
for a division of such an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.arith import interval
from tilewright.arith.affine import (
    ZERO,
    Affine,
    factors,
    from_affine,
    number,
    single,
    split_by,
    to_affine,
)
from tilewright.arith.expr import (
    Binary,
    Bitcast,
    Broadcast,
    Cast,
    Const,
    Expr,
    Select,
    Unary,
    Var,
    binary,
    maximum,
    minimum,
)
from tilewright.arith.interval import NATURAL, UNBOUNDED, Interval
from tilewright.arith.vector import Ramp
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import BOOL, I64

__all__ = ["NATURAL", "UNBOUNDED", "Bounds", "Interval", "bound", "lower", "upper"]


class Bounds:
    """Numeric bounds of many expressions under the same ranges; `default` is for other names."""

    def __init__(self, ranges: Mapping[str, Interval], default: Interval = UNBOUNDED) -> None:
        self.ranges = ranges
        self.default = default
        self._memo: dict[Expr, Interval] = {}

    def of(self, e: Expr) -> Interval:
        """The bounds of an integer or bool expression."""
        found = self._memo.get(e)
        if found is None:
            found = self._memo[e] = self._of(e)
        return found

    def of_form(self, form: Affine) -> Interval:
        """The bounds of a linear form, term by term."""
        lo: int | None = form.constant
        hi: int | None = form.constant
        for atom, c in form.coeffs.items():
            low, high = self.of(atom)
            if c < 0:
                low, high = high, low
            lo = None if lo is None or low is None else lo + low * c
            hi = None if hi is None or high is None else hi + high * c
            if lo is None and hi is None:
                return UNBOUNDED
        return Interval(lo, hi)

    def _of(self, e: Expr) -> Interval:
        natural = interval.of_dtype(e.dtype)
        rule = _BOUND.get(type(e))
        if rule is None or e.dtype.is_float:
            return natural
        found = rule(e, self)
        # Narrow integers wrap: a result that may overflow is unbounded.
        return found if found.within(natural) else natural

    def variable(self, e: Var) -> Interval:
        """The range given for a variable, or the default; other dtypes are no sizes."""
        given = self.ranges.get(e.name)
        if given is None:
            given = self.default if e.dtype == I64 else interval.of_dtype(e.dtype)
        return given


def _unary(e: Unary, bounds: Bounds) -> Interval:
    inner = bounds.of(e.a)
    if e.op == "neg":
        return interval.negate(inner)
    if e.dtype == BOOL:
        return interval.negation(inner)
    return interval.subtract(Interval(-1, -1), inner)


def _select(e: Select, bounds: Bounds) -> Interval:
    chosen = bounds.of(e.cond).point
    if chosen is not None:
        return bounds.of(e.a if chosen else e.b)
    return interval.join(bounds.of(e.a), bounds.of(e.b))


def _binary(e: Binary, bounds: Bounds) -> Interval:
    if e.a.dtype.is_float:
        return interval.of_dtype(e.dtype)
    return interval.BINARY[e.op](bounds.of(e.a), bounds.of(e.b))


def _cast(e: Cast, bounds: Bounds) -> Interval:
    if e.dtype == BOOL or e.a.dtype.is_float:
        return interval.of_dtype(e.dtype)
    return bounds.of(e.a)


def _ramp(e: Ramp, bounds: Bounds) -> Interval:
    last = e.stride * (e.count - 1)
    return interval.add(bounds.of(e.base), Interval(min(0, last), max(0, last)))


_BOUND: dict[type, Callable[[Any, Bounds], Interval]] = {
    Const: lambda e, bounds: Interval(int(e.value), int(e.value)),
    Var: lambda e, bounds: bounds.variable(e),
    Binary: _binary,
    Unary: _unary,
    Select: _select,
    Cast: _cast,
    Bitcast: lambda e, bounds: interval.of_dtype(e.dtype),
    Ramp: _ramp,
    Broadcast: lambda e, bounds: bounds.of(e.a),
}


def bound(e: Expr, ranges: Mapping[str, Interval], default: Interval = UNBOUNDED) -> Interval:
    """The values that `e` can have when each variable stays in its range."""
    return Bounds(ranges, default).of(e)


def loop_ranges(extents: Mapping[str, Expr]) -> dict[str, Interval]:
    """The numeric range 0 .. extent - 1 of each loop variable; sizes are at least 0."""
    sizes = Bounds({}, NATURAL)
    highs = {name: sizes.of(extent).hi for name, extent in extents.items()}
    return {name: Interval(0, None if hi is None else hi - 1) for name, hi in highs.items()}


def upper(e: Expr, extents: Mapping[str, Expr]) -> Expr | None:
    """The greatest value of `e` over all loop variables, as an expression of the sizes.

    A variable in `extents` runs from 0 to its extent - 1, any other name is a size of at least 0.
    None where no bound is found.
    """
    return _Extreme(extents, free_vars(e)).end(e, greatest=True)


def lower(e: Expr, extents: Mapping[str, Expr]) -> Expr | None:
    """The least value of `e` over all loop variables, as `upper` gives the greatest."""
    return _Extreme(extents, free_vars(e)).end(e, greatest=False)


class _Extreme:
    """Replaces loop variables by the end of their range that makes a form greatest or least."""

    def __init__(self, extents: Mapping[str, Expr], used: frozenset[str]) -> None:
        self.last = {name: to_affine(extent).shift(-1) for name, extent in extents.items()}
        # A variable that has a value has an extent of at least 1.
        sizes = {
            n.name: Interval(1, None)
            for v, n in extents.items()
            if isinstance(n, Var) and v in used
        }
        self.numeric = Bounds(sizes | loop_ranges(extents), NATURAL)

    def end(self, e: Expr, greatest: bool) -> Expr | None:
        found = self.of(to_affine(e), greatest)
        for _ in self.last:
            if found is None or not self._loops(found):
                break
            # An extent may itself depend on an outer loop variable.
            found = self.of(found, greatest)
        return None if found is None or self._loops(found) else from_affine(found)

    def of(self, form: Affine, greatest: bool) -> Affine | None:
        for name in sorted(self._loops(form)):
            form = self._replace(form, name, greatest)
        result = number(form.constant)
        for atom, c in form.coeffs.items():
            extreme = self._atom(atom, greatest == (c > 0)) if self._in_loop(atom) else single(atom)
            if extreme is None:
                return None
            result = result.plus(extreme, c)
        return result

    def _loops(self, form: Affine) -> set[str]:
        return {name for atom in form.coeffs for name in free_vars(atom) if name in self.last}

    def _in_loop(self, e: Expr) -> bool:
        return not free_vars(e).isdisjoint(self.last)

    def _replace(self, form: Affine, name: str, greatest: bool) -> Affine:
        """`p * name + rest` at the better end of the range, where the sign of `p` is known."""
        split = split_by(form, name)
        if split is None:
            return form
        slope, rest = split
        lo, hi = self.numeric.of_form(slope)
        if lo is not None and lo >= 0:
            return rest + slope * (self.last[name] if greatest else ZERO)
        if hi is not None and hi <= 0:
            return rest + slope * (ZERO if greatest else self.last[name])
        return form

    def _atom(self, e: Expr, greatest: bool) -> Affine | None:
        if isinstance(e, Var):
            return self.last[e.name] if greatest else ZERO
        if isinstance(e, Select):
            return self._both(maximum if greatest else minimum, e.a, e.b, greatest)
        if not isinstance(e, Binary) or e.dtype != I64:
            return None
        if e.op == "mul":
            return self._product(factors(e), greatest)
        if e.op in ("min", "max"):
            return self._both(minimum if e.op == "min" else maximum, e.a, e.b, greatest)
        return self._division(e, greatest)

    def _both(
        self, combine: Callable[[Expr, Expr], Expr], a: Expr, b: Expr, greatest: bool
    ) -> Affine | None:
        first, second = (self.of(to_affine(x), greatest) for x in (a, b))
        if first is None or second is None:
            return None
        return to_affine(combine(from_affine(first), from_affine(second)))

    def _product(self, parts: tuple[Expr, ...], greatest: bool) -> Affine | None:
        result = number(1)
        for part in parts:
            lo = self.numeric.of(part).lo
            extreme = self._atom(part, greatest) if self._in_loop(part) else single(part)
            if extreme is None or lo is None or lo < 0:
                return None
            least = self.numeric.of_form(extreme).lo
            # A factor is at least 0, even where its symbolic lower bound does not prove it.
            result = result * (ZERO if not greatest and (least is None or least < 0) else extreme)
        return result

    def _division(self, e: Binary, greatest: bool) -> Affine | None:
        divisor = self.numeric.of(e.b).lo
        if divisor is None or divisor < 0 or self._in_loop(e.b):
            return None
        if e.op == "floordiv":
            inner = self.of(to_affine(e.a), greatest)
            return None if inner is None else to_affine(binary("floordiv", from_affine(inner), e.b))
        if e.op == "mod":
            return to_affine(e.b).shift(-1) if greatest else ZERO
        return None
