from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.arith.strategies import World, index_exprs, worlds
from tests.for_each import for_each
from tilewright.arith.affine import Affine, from_affine, number, to_affine
from tilewright.arith.division import (
    Division,
    Monomial,
    divide_by,
    monomial_of,
    recombine,
    terms_of,
)
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, Var
from tilewright.arith.prove import Prover
from tilewright.arith.text import parse_expr, print_expr

EXTENTS = {
    name: parse_expr(text)
    for name, text in {"i": "H", "j": "W", "k": "8", "m": "4", "s": "6"}.items()
}
DIVISION = Division(Prover(EXTENTS))


def form(text: str) -> Affine:
    return to_affine(parse_expr(text))


def text_of(result: Affine) -> str:
    return print_expr(from_affine(result))


@for_each(
    ("p", "d", "quotient", "rest"),
    [
        ("i * 8 + k", "8", "i", "k"),
        ("i * 16 + k", "8", "i * 2", "k"),
        ("i * W + j", "W", "i", "j"),
        ("i * W * 4 + m * W + j", "W * 4", "i", "W * m + j"),
        ("i * W + j", "W * 4", "i // 4", "W * (i % 4) + j"),
        ("s * 4 + m", "8", "s // 2", "m + s % 2 * 4"),
        ("i * 4", "8", "i // 2", "i % 2 * 4"),
        ("i * 12 + N", "8", "(N + i * 4) // 8 + i", "(N + i * 4) % 8"),
        ("i * (W + 2) + j", "W + 2", "i", "j"),
        ("N - 1", "8", "(N + 7) // 8 - 1", "(N + 7) % 8"),
        ("i", "-8", "i * (-1) // 8", "i * (-1) % 8 * (-1)"),
        ("k + 16", "8", "2", "k"),
        ("0 - k - 1", "8", "-1", "7 - k"),
        ("i // 4", "2", "i // 8", "i // 4 % 2"),
        ("i % 64", "8", "i // 8 % 8", "i % 8"),
        ("17", "5", "3", "2"),
        ("0", "N", "0", "0"),
        ("N * 5", "N", "5", "0"),
        ("i", "0", "i // 0", "i % 0"),
    ],
)
def test_quotient_and_rest(p: str, d: str, quotient: str, rest: str) -> None:
    assert text_of(DIVISION.quotient(form(p), form(d))) == print_expr(parse_expr(quotient))
    assert text_of(DIVISION.rest(form(p), form(d))) == rest


@given(
    index_exprs(3),
    st.one_of(st.integers(-9, 9).map(number), index_exprs(1).map(to_affine)),
    worlds(),
)
def test_division_keeps_the_value(e: Expr, d: Affine, world: World) -> None:
    division = Division(Prover(world.extents))
    try:
        p, divisor = evaluate(e, world.env), evaluate(from_affine(d), world.env)
    except ZeroDivisionError:
        return
    assume(divisor != 0)
    quotient = division.quotient(to_affine(e), d)
    rest = division.rest(to_affine(e), d)
    assert evaluate(from_affine(quotient), world.env) == p // divisor
    assert evaluate(from_affine(rest), world.env) == p % divisor


@given(index_exprs(3), worlds())
def test_recombining_keeps_the_value(e: Expr, world: World) -> None:
    try:
        expected = evaluate(e, world.env)
    except ZeroDivisionError:
        return
    joined = recombine(to_affine(e), Division(Prover(world.extents)))
    assert evaluate(from_affine(joined), world.env) == expected
    assert len(joined.coeffs) <= len(to_affine(e).coeffs)


@for_each(
    ("before", "after"),
    [
        ("i // 8 * 8 + i % 8", "i"),
        ("i - i // 8 * 8", "i % 8"),
        ("N * (i - i // 8 * 8)", "N * (i % 8)"),
        ("i // W * W + i % W", "i"),
        ("i // 8 % 4 * 8 + i % 8", "i % 32"),
        ("i // 8 * 8 + i % 4", "i % 4 + i // 8 * 8"),
        ("i // 8 * 4 + i % 8", "i % 8 + i // 8 * 4"),
        ("(N + i * 2) // 11 * 11 + (N + i * 2) % 11", "N + i * 2"),
        ("(N + i * 6) // 11 * 11 + (N + i * 6) % 11 + i * 506", "N + i * 512"),
    ],
)
def test_recombine(before: str, after: str) -> None:
    assert text_of(recombine(form(before), DIVISION)) == after


def test_monomials() -> None:
    n, w = Var("N"), Var("W")
    assert monomial_of(form("N * W * 4")) == Monomial(4, (n, w))
    assert monomial_of(form("3")) == Monomial(3, ())
    assert monomial_of(form("0")) is None
    assert monomial_of(form("N + 1")) is None
    assert Monomial(4, (w, n)).form() == form("N * W * 4")
    assert set(terms_of(form("N * 2 + 3"))) == {Monomial(2, (n,)), Monomial(3, ())}


def test_divide_by_a_monomial() -> None:
    p = form("N * W * 9 - W * 5 + N + 7")
    assert divide_by(p, Monomial(4, (Var("W"),))) == (
        form("N * 2 - 1"),
        form("N * W - W + N + 7"),
    )
    assert divide_by(p, Monomial(4, ())) == (form("N * W * 2 - W + 1"), form("N * W - W + N + 3"))
