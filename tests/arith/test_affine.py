from __future__ import annotations

from hypothesis import given

from tests.arith.strategies import World, index_exprs, worlds
from tests.for_each import for_each
from tilewright.arith.affine import (
    MAX_PRODUCT_TERMS,
    ZERO,
    Affine,
    factors,
    from_affine,
    number,
    product_atom,
    single,
    split_by,
    stride_of,
    to_affine,
)
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, Var
from tilewright.arith.text import parse_expr, print_expr
from tilewright.core.dtypes import I64

ROW, COL, WIDTH = Var("i"), Var("j"), Var("W")


@for_each(
    ("text", "canonical"),
    [
        ("j + i", "i + j"),
        ("i * 8 + j - 1", "i * 8 + j - 1"),
        ("3 + i - j", "i - j + 3"),
        ("3 - j", "3 - j"),
        ("0 - j * 2", "j * (-2)"),
        ("(-3) - j", "j * (-1) - 3"),
        ("(i + 1) * (W + 2)", "W + W * i + i * 2 + 2"),
        ("i - i", "0"),
        ("-(i - j)", "j - i"),
        ("W * i - i * W", "0"),
        ("(i // 8) * 8 + min(i, j)", "i // 8 * 8 + min(i, j)"),
        ("5", "5"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert print_expr(from_affine(to_affine(parse_expr(text)))) == canonical


@given(index_exprs(), worlds())
def test_the_form_has_the_same_value(e: Expr, world: World) -> None:
    try:
        expected = evaluate(e, world.env)
    except ZeroDivisionError:
        return
    form = to_affine(e)
    assert evaluate(from_affine(form), world.env) == expected
    assert 0 not in form.coeffs.values()


@given(index_exprs())
def test_the_form_of_a_form_is_the_form(e: Expr) -> None:
    form = to_affine(e)
    assert to_affine(from_affine(form)) == form
    assert from_affine(to_affine(from_affine(form))) is from_affine(form)


def test_arithmetic() -> None:
    a, b = to_affine(ROW * 8 + 1), to_affine(COL - 2)
    assert a + b == to_affine(ROW * 8 + COL - 1)
    assert a - a == ZERO
    assert -a == to_affine(ROW * -8 - 1)
    assert a * b == to_affine((ROW * 8 + 1) * (COL - 2))
    assert a * number(3) == number(3) * a == a.scale(3)
    assert a.scale(0) == ZERO
    assert a.plus(b, 0) == a
    assert a.shift(2).constant == 3
    assert a.shift(0) is a
    assert to_affine(ROW * 8 + 4).divide(4) == to_affine(ROW * 2 + 1)
    assert to_affine(ROW * 8 + COL * 12 + 1).gcd() == 4
    assert number(3).gcd() == 0
    assert single(ROW, 2) == to_affine(ROW * 2)


def test_forms_are_compared_by_value() -> None:
    assert Affine({ROW: 1, COL: 2}, 3) == Affine({COL: 2, ROW: 1}, 3)
    assert len({Affine({ROW: 1, COL: 2}, 3), Affine({COL: 2, ROW: 1}, 3)}) == 1
    assert Affine({ROW: 1}, 3) != Affine({ROW: 1}, 4)
    assert Affine({ROW: 1}, 3) != "i + 3"
    assert repr(Affine({ROW: 1}, 3)) == "Affine(i + 3)"


def test_products_have_one_order() -> None:
    assert product_atom((ROW, WIDTH)) is product_atom((WIDTH, ROW)) is WIDTH * ROW
    assert factors(WIDTH * ROW * COL) == (WIDTH, ROW, COL)
    assert factors(ROW) == (ROW,)


def test_large_products_are_atoms() -> None:
    total = parse_expr(" + ".join(f"x{n}" for n in range(MAX_PRODUCT_TERMS // 8 + 1)))
    assert list(to_affine(total * total).coeffs) == [total * total]


@for_each(
    ("text", "stride"),
    [
        ("i", 1),
        ("i * 8 + j", 8),
        ("j", 0),
        ("3", 0),
        ("(i + j) * 4 - i", 3),
        ("i * W", None),
        ("i // 8", None),
        ("i % 8 + i", None),
        ("i * i", None),
        ("i * i - i * i", 0),
        ("A[i]", None),
        ("A[j] + i", 1),
        ("min(i, j)", None),
        ("W * j + i", 1),
    ],
)
def test_stride_of(text: str, stride: int | None) -> None:
    assert stride_of(parse_expr(text, {"A": I64}), "i") == stride


def test_split_by() -> None:
    form = to_affine(parse_expr("i * W + i * 3 + j * W + 1"))
    assert split_by(form, "i") == (to_affine(WIDTH + 3), to_affine(COL * WIDTH + 1))
    assert split_by(form, "n") == (ZERO, form)
    assert split_by(to_affine(ROW * ROW), "i") is None
