from __future__ import annotations

import pytest
from hypothesis import given

from tests.arith.strategies import World, index_exprs, typed_exprs, worlds
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Binary, Expr, Var
from tilewright.arith.patterns import const, min_of, wild
from tilewright.arith.rules import ELEMENT, INDEX, is_any, is_float, is_int
from tilewright.arith.ruleset import apply_rules, key_of, measure, operand_dtype, rules
from tilewright.arith.text import parse_expr
from tilewright.arith.vector import Ramp
from tilewright.core.config import override
from tilewright.core.dtypes import BOOL, F32, I64

x, y = wild("x y")
c, d = const("c d")
ZERO = rules("zero", is_int, x - x >> 0, (x * 0) >> 0)
SAME = rules("same", is_any, min_of(x, x) >> x)


def test_sets_compose() -> None:
    e = parse_expr("min(j, j) + (i - i)")
    assert apply_rules(e, ZERO) is parse_expr("min(j, j)")
    assert apply_rules(e, SAME) is parse_expr("j + (i - i)")
    assert apply_rules(e, ZERO | SAME) is parse_expr("j")
    assert (ZERO | SAME).name == "zero|same"


def test_rules_stay_in_their_domain() -> None:
    e = parse_expr("v:f32 - v:f32")
    assert apply_rules(e, ZERO) is e
    floats = rules("floats", is_float, x - x >> 1)
    assert apply_rules(e, floats) is parse_expr("1.0")


def test_commutative_operators_match_both_ways() -> None:
    join = rules("join", is_int, (x * c) + x >> x * 9)
    for text in ("i * 8 + i", "i + i * 8", "8 * i + i", "i + 8 * i"):
        assert apply_rules(parse_expr(text), join) is parse_expr("i * 9")


def test_rewriting_reaches_a_fixpoint() -> None:
    nested = parse_expr("(((i + 1) + 2) + 3) * 2 * 3 - (j - j)")
    assert apply_rules(nested, INDEX) is parse_expr("(i + 6) * 6")


def test_an_expression_that_nothing_fits_is_returned_as_it_is() -> None:
    e = parse_expr("i * 8 + j")
    assert apply_rules(e, INDEX) is e


def test_vectors_stay_vectors() -> None:
    ramp = Ramp(Var("i"), 1, 4)
    assert apply_rules(Binary("sub", ramp, ramp), ZERO) is parse_expr("broadcast(0, 4)")


def test_rewrites_are_traced(capsys: pytest.CaptureFixture[str]) -> None:
    traced = rules("traced", is_int, x - x >> 0)
    with override(trace_rules=True):
        apply_rules(parse_expr("(i - i) + j"), traced)
    assert capsys.readouterr().err == "traced.0: i - i  -->  0\n"
    apply_rules(parse_expr("(k - k) + j"), traced)
    assert capsys.readouterr().err == ""


def test_keys() -> None:
    assert key_of(parse_expr("i + j")) == (Binary, "add")
    assert key_of(parse_expr("i")) is None
    assert operand_dtype(parse_expr("v:f32 < w:f32")) == F32
    assert operand_dtype(parse_expr("i < j & j < i")) == BOOL
    assert operand_dtype(parse_expr("f32(i)")) == F32
    assert operand_dtype(parse_expr("select(i < j, i, j)")) == I64


def test_measure_counts_nodes_then_numerators_then_operators() -> None:
    assert measure(parse_expr("i + j")) == (3, 0, 0)
    assert measure(parse_expr("(i + j) // 8")) == (5, 3, 0)
    assert measure(parse_expr("v:f32 / 2.0")) > measure(parse_expr("v:f32 * 0.5"))
    assert measure(parse_expr("i")) < measure(parse_expr("i + j"))


@given(index_exprs(), worlds())
def test_index_rules_keep_the_value(e: Expr, world: World) -> None:
    try:
        expected = evaluate(e, world.env)
    except ZeroDivisionError:
        return
    result = apply_rules(e, INDEX)
    assert evaluate(result, world.env) == expected
    assert apply_rules(result, INDEX) is result
    assert measure(result) <= measure(e)


@given(typed_exprs())
def test_element_rules_keep_dtype_and_lanes(e: Expr) -> None:
    result = apply_rules(e, ELEMENT)
    assert result.dtype == e.dtype
    assert result.lanes == e.lanes
