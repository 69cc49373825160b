"""Comparisons of linear forms: decided by their bounds where possible, otherwise normalized.

Every order becomes `left < right` with negative terms moved to the other side: `i + 1 <= N` and
`i - N < 0` are both `i < N`. If `r` varies by less than `g`, the sign of `g * x + r` depends on `x`
alone: `i * 8 + j < n * 8` is `i < n` where `0 <= j < 8`.
"""

from __future__ import annotations

from math import gcd

from tilewright.arith.affine import Affine, from_affine, number, text_key, to_affine
from tilewright.arith.division import Division, recombine
from tilewright.arith.expr import FALSE, TRUE, Binary, Const, Expr
from tilewright.arith.prove import Prover


def less(difference: Affine, division: Division) -> Expr:
    """The condition `0 < difference`."""
    prover = division.prover
    difference = recombine(difference, division)
    if prover.nonneg(difference.shift(-1)):
        return TRUE
    if prover.nonneg(-difference):
        return FALSE
    narrowed = _without_floordiv(_without_rest(difference, prover), prover)
    if narrowed != difference:
        return less(narrowed, division)
    left, right = _sides(difference)
    return Binary("lt", left, right)


def equal(difference: Affine, division: Division, truth: bool) -> Expr:
    """The condition `difference == 0`, or its opposite where `truth` is false."""
    prover = division.prover
    difference = recombine(difference, division)
    always, never = (TRUE, FALSE) if truth else (FALSE, TRUE)
    if not difference.coeffs:
        return never if difference.constant else always
    g = difference.gcd()
    if difference.constant % g:
        return never
    if prover.nonneg(difference.shift(-1)) or prover.nonneg((-difference).shift(-1)):
        return never
    sides = _sides(difference.divide(g))
    left, right = sorted(sides, key=lambda side: (isinstance(side, Const), text_key(side)))
    return Binary("eq" if truth else "ne", left, right)


def _sides(difference: Affine) -> tuple[Expr, Expr]:
    """`(left, right)` with `difference == right - left` and no negative terms in either."""
    k = difference.constant
    left = {atom: -c for atom, c in difference.coeffs.items() if c < 0}
    right = {atom: c for atom, c in difference.coeffs.items() if c > 0}
    return from_affine(Affine(left, max(-k, 0))), from_affine(Affine(right, max(k, 0)))


def _without_rest(difference: Affine, prover: Prover) -> Affine:
    """`0 < g * x + r` as `0 < x - t + 1`, where `x >= t` makes it true and `x < t` false."""
    sizes = {abs(c) for c in difference.coeffs.values()}
    candidates = {gcd(c, other) for c in sizes for other in sizes}
    for g in sorted(candidates - {1}, reverse=True):
        x = {atom: c // g for atom, c in difference.coeffs.items() if c % g == 0}
        r = Affine({a: c for a, c in difference.coeffs.items() if c % g}, difference.constant)
        lo, hi = prover.numeric.of_form(r)
        if lo is None or hi is None:
            continue
        t = -((lo - 1) // g)
        if g * (t - 1) + hi <= 0:
            return Affine(x, 1 - t)
    return difference


def _without_floordiv(difference: Affine, prover: Prover) -> Affine:
    """`y // d < b` as `y < b * d` and `a < y // d` as `a * d + d <= y`, for the only division."""
    divisions = [
        (atom, c)
        for atom, c in difference.coeffs.items()
        if isinstance(atom, Binary) and atom.op == "floordiv"
    ]
    if len(divisions) != 1 or abs(divisions[0][1]) != 1:
        return difference
    atom, c = divisions[0]
    assert isinstance(atom, Binary)
    y, d = to_affine(atom.a), to_affine(atom.b)
    if not prover.is_divisor(d):
        return difference
    rest = Affine(
        {a: k for a, k in difference.coeffs.items() if a is not atom}, difference.constant
    )
    if c < 0:
        return rest * d - y
    return y + rest * d - d + number(1)
