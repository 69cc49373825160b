"""Division of linear forms: `(i * 8 + j) // 8` is `i`, and `% 8` is `j`, where `0 <= j < 8`.

With `p == q * d + r` it holds that `p // d == q + r // d` and `p % d == r % d`, whatever the signs.
`Division` takes out such a `q`, then looks for a factor `g` of `d` with `r == g * s + t` and
`0 <= t < g`, since then `r // d == s // (d / g)` and `r % d == g * (s % (d / g)) + t`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import NamedTuple

from tilewright.arith.affine import (
    ZERO,
    Affine,
    factors,
    from_affine,
    number,
    product_atom,
    single,
    text_key,
    to_affine,
)
from tilewright.arith.expr import Binary, Expr
from tilewright.arith.memo import Memo
from tilewright.arith.prove import Prover

FormKey = tuple[frozenset[tuple[Expr, int]], int]
# A long division by a sum gives up after this many terms.
MAX_QUOTIENT_TERMS = 16


class Monomial(NamedTuple):
    """An integer times a product of atoms."""

    coefficient: int
    parts: tuple[Expr, ...]

    def form(self) -> Affine:
        """It as a linear form."""
        if not self.parts:
            return number(self.coefficient)
        return single(product_atom(self.parts), self.coefficient)


def monomial_of(form: Affine) -> Monomial | None:
    """The form as one product; None where it is a sum, or zero."""
    if not form.coeffs:
        return Monomial(form.constant, ()) if form.constant else None
    if len(form.coeffs) > 1 or form.constant:
        return None
    ((atom, c),) = form.coeffs.items()
    return Monomial(c, factors(atom))


def _without(parts: tuple[Expr, ...], taken: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
    left = list(parts)
    for part in taken:
        if part not in left:
            return None
        left.remove(part)
    return tuple(left)


def terms_of(form: Affine) -> Iterator[Monomial]:
    """The terms of a form, the constant included."""
    for atom, c in form.coeffs.items():
        yield Monomial(c, factors(atom))
    if form.constant:
        yield Monomial(form.constant, ())


def divide_by(form: Affine, d: Monomial) -> tuple[Affine, Affine]:
    """`(q, r)` with `form == q * d + r`: long division, term by term.

    Coefficients in `r` are less than that of `d` and keep their sign; the constant becomes natural
    where `d` is a number.
    """
    if not d.parts:
        return _divide_by_number(form, d.coefficient)
    q, r = ZERO, number(form.constant)
    for atom, c in form.coeffs.items():
        left = _without(factors(atom), d.parts)
        share = _truncated(c, d.coefficient) if left is not None else 0
        if left is None or not share:
            r = r.plus(single(atom), c)
            continue
        q = q + Monomial(share, left).form()
        if c != share * d.coefficient:
            r = r.plus(single(atom), c - share * d.coefficient)
    return q, r


def _divide_by_number(form: Affine, d: int) -> tuple[Affine, Affine]:
    quotients = {atom: _truncated(c, d) for atom, c in form.coeffs.items()}
    rests = {atom: c - quotients[atom] * d for atom, c in form.coeffs.items()}
    return (
        Affine({a: c for a, c in quotients.items() if c}, form.constant // d),
        Affine({a: c for a, c in rests.items() if c}, form.constant % d),
    )


def _truncated(c: int, d: int) -> int:
    return c // d if (c < 0) == (d < 0) else -(-c // d)


class Division:
    """Quotients and remainders of forms, given what a prover knows of their variables."""

    def __init__(self, prover: Prover) -> None:
        self.prover = prover
        self._quotients: Memo[tuple[FormKey, FormKey], Affine] = Memo()
        self._rests: Memo[tuple[FormKey, FormKey], Affine] = Memo()

    def quotient(self, p: Affine, d: Affine) -> Affine:
        """`p // d`."""
        key = (p.key, d.key)
        found = self._quotients.get(key)
        return found if found is not None else self._quotients.keep(key, self._quotient(p, d))

    def rest(self, p: Affine, d: Affine) -> Affine:
        """`p % d`."""
        key = (p.key, d.key)
        found = self._rests.get(key)
        return found if found is not None else self._rests.keep(key, self._rest(p, d))

    def _quotient(self, p: Affine, d: Affine) -> Affine:
        if not d.coeffs and d.constant <= 0:
            return self.quotient(-p, -d) if d.constant else _atom("floordiv", p, d)
        q, r = self._split(p, d)
        if (known := self._known_quotient(r, d)) is not None:
            return q.shift(known)
        split = self._split_by_factor(r, d)
        if split is not None:
            g, s, _ = split
            return q + self.quotient(s, _exact(d, g))
        nested = self._nested_quotient(r, d)
        return q + (_atom("floordiv", r, d) if nested is None else nested)

    def _rest(self, p: Affine, d: Affine) -> Affine:
        if not d.coeffs and d.constant <= 0:
            return -self.rest(-p, -d) if d.constant else _atom("mod", p, d)
        _, r = self._split(p, d)
        if (known := self._known_quotient(r, d)) is not None:
            return r.plus(d, -known)
        opened = self._without_inner_mod(r, d)
        if opened != r:
            return self.rest(opened, d)
        split = self._split_by_factor(r, d)
        if split is not None:
            g, s, t = split
            return self.rest(s, _exact(d, g)) * g.form() + t
        return _atom("mod", r, d)

    def _split(self, p: Affine, d: Affine) -> tuple[Affine, Affine]:
        """`p == q * d + r`."""
        monomial = monomial_of(d)
        if monomial is not None:
            return divide_by(p, monomial)
        q, r = self._long_division(p, d)
        # More terms than before pay only where the remainder is then in range.
        return (q, r) if len(r.coeffs) < len(p.coeffs) or self.prover.in_range(r, d) else (ZERO, p)

    def _long_division(self, p: Affine, d: Affine) -> tuple[Affine, Affine]:
        leads = ((len(factors(atom)), text_key(atom), atom) for atom in d.coeffs)
        lead = max(leads, key=lambda entry: entry[:2])[2]
        q, r = ZERO, p
        for _ in range(MAX_QUOTIENT_TERMS):
            share, _ = divide_by(r, Monomial(d.coeffs[lead], factors(lead)))
            if not share.coeffs and not share.constant:
                break
            q, r = q + share, r - share * d
        return q, r

    def _known_quotient(self, r: Affine, d: Affine) -> int | None:
        """`r // d` where it is constant."""
        if not r.coeffs and not (d.coeffs and r.constant):
            return r.constant // d.constant if r.constant else 0
        if d.coeffs:
            return 0 if self.prover.in_range(r, d) else None
        lo, hi = self.prover.numeric.of_form(r)
        if lo is not None and hi is not None:
            return lo // d.constant if lo // d.constant == hi // d.constant else None
        return 0 if self.prover.in_range(r, d) else None

    def _split_by_factor(self, r: Affine, d: Affine) -> tuple[Monomial, Affine, Affine] | None:
        """`(g, s, t)` with `r == g * s + t`, `0 <= t < g` and `g` a proper divisor of `d`."""
        whole = monomial_of(d)
        if whole is None or not self.prover.is_divisor(d):
            return None
        for g in self._common_factors(r, whole):
            s, t = divide_by(r, g)
            if self.prover.in_range(t, g.form()):
                return g, s, t
        return None

    def _common_factors(self, r: Affine, d: Monomial) -> list[Monomial]:
        """The common factors of terms of `r` with `d`, largest first."""
        found: set[Monomial] = set()
        for term in terms_of(r):
            left = list(term.parts)
            shared = []
            for part in d.parts:
                if part in left:
                    left.remove(part)
                    shared.append(part)
            g = Monomial(gcd(term.coefficient, d.coefficient), tuple(shared))
            if g != d and (g.coefficient > 1 or g.parts) and self._is_natural(g):
                found.add(g)
        return sorted(found, key=lambda g: (-len(g.parts), -g.coefficient, _text(g)))

    def _is_natural(self, g: Monomial) -> bool:
        return all(self.prover.is_divisor(single(part)) for part in g.parts)

    def _nested_quotient(self, r: Affine, d: Affine) -> Affine | None:
        """`(y // a + k) // d` as `(y + k * a) // (a * d)`, `(y % m) // d` as `y // d % (m / d)`."""
        if len(r.coeffs) != 1:
            return None
        ((atom, c),) = r.coeffs.items()
        if c != 1 or not isinstance(atom, Binary):
            return None
        y, inner = to_affine(atom.a), to_affine(atom.b)
        if not self.prover.is_divisor(inner) or not self.prover.is_divisor(d):
            return None
        if atom.op == "floordiv":
            return self.quotient(y.plus(inner, r.constant), inner * d)
        if atom.op == "mod" and not r.constant:
            ratio = _ratio(inner, d)
            return None if ratio is None else self.rest(self.quotient(y, d), ratio)
        return None

    def _without_inner_mod(self, r: Affine, d: Affine) -> Affine:
        """`k * (y % m)` is `k * y` under `% d` where `d` divides `k * m`."""
        for atom, c in r.coeffs.items():
            for part in factors(atom):
                if isinstance(part, Binary) and part.op == "mod":
                    others = _without(factors(atom), (part,)) or ()
                    outer = Monomial(c, others).form()
                    if _ratio(to_affine(part.b) * outer, d) is not None:
                        return r.plus(single(atom), -c) + to_affine(part.a) * outer
        return r


def _text(g: Monomial) -> str:
    return " ".join(text_key(part) for part in g.parts)


def _exact(d: Affine, g: Monomial) -> Affine:
    q, r = divide_by(d, g)
    assert r == ZERO, f"{g} does not divide {d}"
    return q


def _ratio(p: Affine, d: Affine) -> Affine | None:
    """`p / d` where that leaves no remainder for any values."""
    monomial = monomial_of(d)
    if monomial is None:
        return None
    q, r = divide_by(p, monomial)
    return q if r == ZERO else None


def _atom(op: str, p: Affine, d: Affine) -> Affine:
    return single(Binary(op, from_affine(p), from_affine(d)))


def recombine(form: Affine, division: Division) -> Affine:
    """The form with quotients and remainders joined: `x // c * c + x % c` is `x`.

    Each candidate is equal to the form; one with fewer terms replaces it, or with as many where
    neither the quotient nor the remainder is left.
    """
    while True:
        better = next((c for c in _candidates(form, division) if _is_better(c, form)), None)
        if better is None:
            return form
        form = better


def _is_better(joined: Affine, form: Affine) -> bool:
    fewer = len(form.coeffs) - len(joined.coeffs)
    return fewer > 0 or (fewer == 0 and len(_divisions(joined)) + 2 <= len(_divisions(form)))


def _candidates(form: Affine, division: Division) -> Iterator[Affine]:
    for atom, part in _divisions(form):
        c = form.coeffs[atom]
        outer = Monomial(c, _without(factors(atom), (part,)) or ())
        rest = form.plus(single(atom), -c)
        y, d = to_affine(part.a), to_affine(part.b)
        if part.op == "mod":
            yield rest + (y - d * division.quotient(y, d)) * outer.form()
            yield from _joined_rests(rest, outer, y, d, division)
        elif (share := _ratio(outer.form(), d)) is not None:
            yield rest + (y - division.rest(y, d)) * share


def _divisions(form: Affine) -> list[tuple[Expr, Binary]]:
    """The atoms of a form that have a quotient or remainder as a factor, and that factor."""
    found: list[tuple[Expr, Binary]] = [
        (atom, part)
        for atom in form.coeffs
        if isinstance(atom, Binary)
        for part in factors(atom)
        if isinstance(part, Binary) and part.op in ("floordiv", "mod")
    ]
    if len(found) > 1:
        found.sort(key=lambda entry: (text_key(entry[0]), text_key(entry[1])))
    return found


def _joined_rests(
    rest: Affine, outer: Monomial, y: Affine, d: Affine, division: Division
) -> Iterator[Affine]:
    """`(w // a % d) * a + w % a` as `w % (a * d)`."""
    if len(y.coeffs) != 1 or y.constant:
        return
    ((atom, c),) = y.coeffs.items()
    if c != 1 or not isinstance(atom, Binary) or atom.op != "floordiv":
        return
    w, a = to_affine(atom.a), to_affine(atom.b)
    share = _ratio(outer.form(), a)
    if share is not None and division.prover.is_divisor(a) and division.prover.is_divisor(d):
        yield rest + (division.rest(w, a * d) - division.rest(w, a)) * share
