"""Proofs that a linear form is never negative, given what values its variables take.

A form is replaced by lower bounds of it until only sizes are left, whose sign is known:

    N - i * 8 - j - 1       with i < N // 8 and j < 8
    N - N // 8 * 8          i and j at the ends that make it least
    N - N                   since N // 8 * 8 <= N

Each step replaces one term by a bound of it, so proofs are sound. They are not complete: a form
that is not proved nonnegative may be so.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from tilewright.arith.affine import (
    Affine,
    factors,
    number,
    single,
    split_by,
    text_key,
    to_affine,
)
from tilewright.arith.bounds import NATURAL, Bounds, loop_ranges
from tilewright.arith.expr import Binary, Expr, Select, Var
from tilewright.arith.memo import Memo
from tilewright.arith.walk import free_vars

# Steps one proof may take: branching on `min` and `max` could otherwise take exponentially many.
MAX_STEPS = 40

Least = dict[str, int]


class Prover:
    """Proves forms nonnegative when each variable of `extents` runs from 0 to its extent - 1.

    Other names are sizes of at least 0, and extents may only contain sizes and outer variables.
    """

    def __init__(self, extents: Mapping[str, Expr]) -> None:
        self.last = {name: to_affine(extent).shift(-1) for name, extent in extents.items()}
        self.numeric = Bounds(loop_ranges(extents), NATURAL)
        self._memo: Memo[tuple[frozenset[tuple[Expr, int]], int], bool] = Memo()
        self._steps = 0

    def nonneg(self, form: Affine) -> bool:
        """Whether `form >= 0` is certain."""
        if not form.coeffs:
            return form.constant >= 0
        lo, hi = self.numeric.of_form(form)
        if lo is not None and lo >= 0:
            return True
        if hi is not None and hi < 0:
            return False
        found = self._memo.get(form.key)
        if found is None:
            self._steps = 0
            # In a fixed order, so that the result does not depend on how a form was built.
            terms = sorted(form.coeffs.items(), key=lambda term: text_key(term[0]))
            ordered = Affine(dict(terms), form.constant)
            found = self._memo.keep(form.key, self._prove(ordered, 1, self._known(form)))
        return found

    def is_divisor(self, form: Affine) -> bool:
        """Whether `form` is nonnegative, and so positive as a divisor: none is 0."""
        lo, hi = self.numeric.of_form(form)
        return lo is not None and lo >= 0 and hi != 0

    def in_range(self, form: Affine, size: Affine) -> bool:
        """Whether `0 <= form < size` is certain."""
        return self.nonneg(form) and self.nonneg((size - form).shift(-1))

    def _prove(self, form: Affine, scale: int, least: Least) -> bool:
        """Whether an integer `n` with `scale * n >= form` is at least 0.

        As `n` is an integer, `form > -scale` is enough. `least` holds what is known of sizes.
        """
        self._steps += 1
        lo, hi = self.numeric.of_form(form)
        if lo is not None and lo > -scale:
            return True
        if self._steps > MAX_STEPS or (hi is not None and hi <= -scale):
            return False
        for step in (self._without_choice, self._without_division, self._without_loop):
            found = step(form, scale, least)
            if found is not None:
                return found
        return _shifted_lo(form, least, self.numeric) > -scale

    def _without_choice(self, form: Affine, scale: int, least: Least) -> bool | None:
        """Prove both cases of a `min`, `max` or `select`."""
        for atom, c in form.coeffs.items():
            if isinstance(atom, Select) or (isinstance(atom, Binary) and atom.op in ("min", "max")):
                rest = form.plus(single(atom), -c)
                cases = (rest.plus(to_affine(x), c) for x in (atom.a, atom.b))
                both = isinstance(atom, Select) or (atom.op == "min") == (c > 0)
                return (all if both else any)(self._prove(case, scale, least) for case in cases)
        return None

    def _without_division(self, form: Affine, scale: int, least: Least) -> bool | None:
        for atom, c in form.coeffs.items():
            for part in factors(atom):
                if not isinstance(part, Binary) or part.op not in ("floordiv", "mod"):
                    continue
                others = _others(atom, part)
                if self.is_divisor(to_affine(part.b)) and self._all_natural(others):
                    rest = form.plus(single(atom), -c)
                    weaken = self._without_floordiv if part.op == "floordiv" else self._without_mod
                    found = weaken(rest, c, others, part, scale, least)
                    if found is not None:
                        return found
        return None

    def _all_natural(self, parts: tuple[Expr, ...]) -> bool:
        lows = (self.numeric.of(part).lo for part in parts)
        return all(lo is not None and lo >= 0 for lo in lows)

    def _without_floordiv(
        self, rest: Affine, c: int, others: tuple[Expr, ...], q: Binary, scale: int, least: Least
    ) -> bool | None:
        """Weaken `rest + c * others * (y // d)`."""
        y, d = to_affine(q.a), to_affine(q.b)
        if abs(c) == 1 and not others and scale == 1:
            # Exact: `rest + y // d >= 0` is `rest * d + y >= 0`, its mirror likewise.
            exact = rest * d + y if c > 0 else (rest.shift(1)) * d - y.shift(1)
            return self._prove(exact, 1, least)
        whole = _multiple(c, others, d)
        if whole is None:
            return self._without_small_quotient(rest, c, others, y, scale, least)
        # `d * (y // d)` is at most `y` and more than `y - d`.
        factor, remaining, grow = whole
        bound = y if c < 0 else (y - d).shift(1)
        weaker = rest.scale(grow) + _times(bound, remaining).scale(factor)
        return self._prove(weaker, scale * grow, least)

    def _without_small_quotient(
        self, rest: Affine, c: int, others: tuple[Expr, ...], y: Affine, scale: int, least: Least
    ) -> bool | None:
        """`y // d` lies between 0 and `y` where `y` is not negative."""
        if not self._prove(y, 1, least):
            return None
        weaker = rest if c > 0 else rest + _times(y, others).scale(c)
        return self._prove(weaker, scale, least)

    def _without_mod(
        self, rest: Affine, c: int, others: tuple[Expr, ...], m: Binary, scale: int, least: Least
    ) -> bool | None:
        """Weaken `rest + c * others * (y % d)`: it is at least 0, at most `d - 1` and `y`."""
        if c > 0:
            return self._prove(rest, scale, least)
        y, d = to_affine(m.a), to_affine(m.b)
        if self._prove(rest + _times(d.shift(-1), others).scale(c), scale, least):
            return True
        if not self._prove(y, 1, least):
            return False
        return self._prove(rest + _times(y, others).scale(c), scale, least)

    def _without_loop(self, form: Affine, scale: int, least: Least) -> bool | None:
        """Put a loop variable at the end of its range that makes the form least."""
        for name in self._loops(form):
            split = split_by(form, name)
            if split is None:
                continue
            slope, rest = split
            if self._prove(slope, 1, least):
                return self._prove(rest, scale, least)
            if self._prove(-slope, 1, least):
                return self._prove(rest + slope * self.last[name], scale, least)
        return None

    def _known(self, form: Affine) -> Least:
        """The least values of sizes: a loop variable that has a value has an extent above 0."""
        known: Least = {}
        for name in self._loops(form):
            for size, low in _known_least(self.last[name].shift(1)).items():
                known[size] = max(low, known.get(size, 0))
        return known

    def _loops(self, form: Affine) -> list[str]:
        names = {name for atom in form.coeffs for name in free_vars(atom) if name in self.last}
        return sorted(names)


def _known_least(extent: Affine) -> Least:
    """What an extent of at least 1 says about a size that it consists of: `N` or `N // c`."""
    if len(extent.coeffs) != 1:
        return {}
    ((atom, c),) = extent.coeffs.items()
    if c <= 0 or extent.constant > 0:
        return {}
    if isinstance(atom, Var):
        return {atom.name: 1}
    if isinstance(atom, Binary) and atom.op == "floordiv" and isinstance(atom.a, Var):
        divisor = to_affine(atom.b)
        return {atom.a.name: max(divisor.constant, 1) if not divisor.coeffs else 1}
    return {}


def _others(atom: Expr, part: Expr) -> tuple[Expr, ...]:
    parts = list(factors(atom))
    parts.remove(part)
    return tuple(parts)


def _times(form: Affine, parts: tuple[Expr, ...]) -> Affine:
    for part in parts:
        form = form.times(part, 1)
    return form


def _multiple(
    c: int, others: tuple[Expr, ...], d: Affine
) -> tuple[int, tuple[Expr, ...], int] | None:
    """`(f, rest, g)` with `c * others * g == f * rest * d`; None where `d` is no such divisor."""
    if not d.coeffs:
        grow = d.constant // gcd(c, d.constant)
        return c * grow // d.constant, others, grow
    if len(d.coeffs) > 1 or d.constant:
        return None
    ((atom, k),) = d.coeffs.items()
    rest = list(others)
    for part in factors(atom):
        if part not in rest:
            return None
        rest.remove(part)
    grow = abs(k) // gcd(c, k)
    return c * grow // k, tuple(rest), grow


def _shifted_lo(form: Affine, least: Least, numeric: Bounds) -> int:
    """A lower bound of a form over sizes, each written as its least value plus a nonnegative rest.

    It proves that `W * C - W` is nonnegative where `C` is at least 1. A form without a known lower
    bound gets one far below any value.
    """
    shifted = number(form.constant)
    for atom, c in form.coeffs.items():
        term = number(c)
        for part in factors(atom):
            low = least.get(part.name, 0) if isinstance(part, Var) else 0
            term = term * (single(part).shift(low) if low else single(part))
        shifted = shifted + term
    lows = {atom: numeric.of(atom).lo for atom in shifted.coeffs}
    if any(c < 0 or lows[atom] is None for atom, c in shifted.coeffs.items()):
        return -(1 << 200)
    return shifted.constant + sum(c * (lows[a] or 0) for a, c in shifted.coeffs.items())
