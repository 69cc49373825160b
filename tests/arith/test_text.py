from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arith.strategies import BUFFERS, SCALARS, index_exprs, literals, typed_exprs
from tests.for_each import for_each
from tilewright.arith.expr import Const, Expr, Unary, Var, const
from tilewright.arith.text import parse_expr, print_expr
from tilewright.core.dtypes import BOOL, F32, F64, I32
from tilewright.core.errors import ParseError

ELEMENTS = {"A": F32, "B": F32}


@given(typed_exprs())
def test_round_trip(e: Expr) -> None:
    assert parse_expr(print_expr(e), BUFFERS) is e


@given(index_exprs())
def test_round_trip_of_indices(e: Expr) -> None:
    assert parse_expr(print_expr(e)) is e


@given(st.sampled_from(SCALARS).flatmap(literals))
def test_round_trip_of_literals(e: Expr) -> None:
    assert parse_expr(print_expr(e)) is e


@for_each(
    "text",
    [
        "max(A[i.0 * 8 + i.1, k] * 2.0, 0.0)",
        "x + 1",
        "x:i32 + 1:i32",
        "(a + b) * c",
        "a - (b - c)",
        "a - b - c",
        "a // b % c",
        "a < b & c < d | e == f",
        "a < b == c < d",
        "a < (b == c) < d",
        "!(a < b)",
        "-(a) + b",
        "(-3) * x",
        "f32(n)",
        "bits.i32(x:f32)",
        "select(i < n, A[i], 0.0)",
        "A[i, j ? i < n]",
        "A[]",
        "sum(k in K) A[i, k]",
        "max(k in K, l in L) (A[i, k] * B[l])",
        "(sum(k in K) A[k]) + 1.0",
        "ramp(i, (-1), 4)",
        "broadcast(x, 4)",
        "fma(a:f32, b:f32, c:f32)",
        "rem(a, b)",
        "inf:f32",
        "(-inf:f64)",
        "nan:f32",
        "1e+30",
        "true & false",
    ],
)
def test_text_is_canonical(text: str) -> None:
    text = text.replace("ramp(i, (-1), 4)", "ramp(i, -1, 4)")
    assert print_expr(parse_expr(text, ELEMENTS)) == text


@for_each(
    ("written", "meant"),
    [
        ("i > 3", "3 < i"),
        ("i >= j + 1", "j + 1 <= i"),
        ("-x", "-(x)"),
        ("-x * 2", "-(x) * 2"),
        ("(-3 + x)", "(-3) + x"),
        ("a - -3", "a - (-3)"),
        ("a+b*c", "a + b * c"),
        ("((a))", "a"),
        ("1e3", "1000.0"),
        ("a  # a comment", "a"),
    ],
)
def test_other_spellings(written: str, meant: str) -> None:
    assert print_expr(parse_expr(written)) == meant


def test_literals_say_their_dtype() -> None:
    assert parse_expr("1") is const(1)
    assert parse_expr("1.0") is const(1.0, F32)
    assert parse_expr("1.0:f64") is const(1.0, F64)
    assert parse_expr("1:i32") is const(1, I32)
    assert parse_expr("true") is const(True, BOOL)
    assert parse_expr("(-0.0)") is Const(-0.0, F32)
    assert parse_expr("nan:f32") is Const(math.nan, F32)
    assert parse_expr("x:f32") is Var("x", F32)
    assert parse_expr("-(3)") is Unary("neg", const(3))


@for_each(
    ("text", "column", "message"),
    [
        ("", 1, "expected a name"),
        ("i +", 4, "expected a name"),
        ("(i", 3, "expected ')'"),
        ("i j", 3, "unexpected 'j'"),
        ("i $", 3, "unexpected character"),
        ("C[i]", 3, "no buffer named 'C'"),
        ("A[i", 4, "expected ']'"),
        ("exp(a, b)", 10, "no function exp of 2 arguments"),
        ("sum(a, b)", 10, "no function sum of 2 arguments"),
        ("max(a)", 7, "no function max of 1 arguments"),
        ("unknown(a)", 11, "no function unknown"),
        ("sum(k in K) A[k] B", 18, "unexpected 'B'"),
    ],
)
def test_errors_say_where(text: str, column: int, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_expr(text, ELEMENTS)
    assert message in caught.value.message
    assert (caught.value.loc.line, caught.value.loc.column) == (1, column)
