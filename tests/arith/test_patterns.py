from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Const, Expr, Select, Var
from tilewright.arith.patterns import (
    Bindings,
    Pattern,
    Rule,
    call_of,
    cast_of,
    compute,
    const,
    fold,
    max_of,
    min_of,
    select_of,
    wild,
)
from tilewright.arith.text import parse_expr, print_expr
from tilewright.core.dtypes import F32, I64

x, y = wild("x y")
c, d = const("c d")
ROW = Var("i")


def rewritten(rule: Rule, text: str) -> str | None:
    result = rule.apply(parse_expr(text))
    return None if result is None else print_expr(result)


@for_each(
    ("pattern", "text"),
    [
        (x + y, "i + 3"),
        (x + x, "i + i"),
        (x - c, "i - 3"),
        (x * 8, "i * 8"),
        (1 - x, "1 - i"),
        (1 / x, "1.0 / v:f32"),
        (x // y % y, "i // 8 % 8"),
        (x / y, "v:f32 / v:f32"),
        ((x < y) & (y <= x), "i < j & j <= i"),
        (x | y, "i | j"),
        (x ^ y, "i ^ j"),
        (x.eq(y), "i == j"),
        (x.ne(y), "i != j"),
        (-x, "-(i)"),
        (~x, "!(i < j)"),
        (min_of(x, max_of(y, c)), "min(i, max(j, 3))"),
        (select_of(x < y, x, y), "select(i < j, i, j)"),
        (call_of("abs", x), "abs(v:f32)"),
        (cast_of("to", x, "of"), "f32(i)"),
    ],
)
def test_matches(pattern: Pattern, text: str) -> None:
    found: Bindings = {}
    e = parse_expr(text)
    assert pattern.match(e, found)
    assert pattern.build(found, e.dtype) is e


@for_each(
    ("pattern", "text"),
    [
        (x + x, "i + j"),
        (x - c, "i - j"),
        (x * 8, "i * 9"),
        (x + 0.0, "v:f32 + (-0.0)"),
        (x + -0.0, "v:f32 + 0.0"),
        (x - y, "i + j"),
        (-x, "!(i)"),
        (call_of("abs", x), "sqrt(v:f32)"),
        (select_of(x, y, y), "select(i < j, i, j)"),
        (cast_of("to", x, "to"), "f32(i)"),
    ],
)
def test_does_not_match(pattern: Pattern, text: str) -> None:
    assert not pattern.match(parse_expr(text), {})


def test_typed_names_match_their_domain_only() -> None:
    n = wild("n", lambda dtype: dtype == I64)
    assert n.match(ROW, {})
    assert not n.match(Var("v", F32), {})


def test_a_condition_sees_numbers_and_expressions() -> None:
    seen: list[object] = []

    def condition(c: int, x: Expr) -> bool:
        seen.extend((c, x))
        return c > 3

    rule = ((x + c) >> x).when(condition)
    assert rewritten(rule, "i + 4") == "i"
    assert rewritten(rule, "i + 3") is None
    assert seen == [4, ROW, 3, ROW]


def test_results_fold() -> None:
    assert rewritten((x + c) + d >> x + fold(c + d), "i + 1 + 2") == "i + 3"
    assert rewritten(x * c >> x / compute(lambda c: 1 / c), "v:f32 * 4.0") == "v:f32 / 0.25"
    assert rewritten(x - x >> 0, "i - i") == "0"
    assert rewritten((x < x) >> False, "i < i") == "false"
    assert rewritten(select_of(x, 1, 0) >> x, "select(i < j, 1, 0)") == "i < j"


def test_literals_take_the_dtype_of_their_place() -> None:
    result = ((x * c) >> (x < 0)).apply(parse_expr("v:f32 * 2.0"))
    assert result is parse_expr("v:f32 < 0.0")
    result = ((x * c) >> (0 < x)).apply(parse_expr("v:f64 * 2.0:f64"))
    assert result is parse_expr("0.0:f64 < v:f64")


def test_the_result_of_a_fold_must_be_a_literal() -> None:
    with pytest.raises(AssertionError, match="is no literal"):
        ((x // c) >> fold(x + c)).apply(parse_expr("i // 2"))


def test_a_rule_without_parentheses_is_noticed() -> None:
    with pytest.raises(AssertionError, match="is no pattern"):
        x & y >> x


def test_variants_exchange_what_may_be_exchanged() -> None:
    assert len(list((x + y).variants())) == 2
    assert len(list((x + x).variants())) == 1
    assert len(list((x - y).variants())) == 1
    assert len(list(((x * c) + y).variants())) == 4
    assert len(list((-(x + y)).variants())) == 2


def test_choices_build_folded() -> None:
    built = select_of(x, y, y).build({"x": Var("p"), "y": ROW}, I64)
    assert built is ROW
    assert isinstance(select_of(x < y, x, y).build({"x": ROW, "y": Const(3)}, I64), Select)
