from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arith.reference import meaning
from tests.arith.strategies import World, conditions, index_exprs, worlds
from tests.for_each import for_each
from tilewright.arith.evaluate import compile_index, evaluate
from tilewright.arith.expr import Expr, Var, binary
from tilewright.arith.text import parse_expr
from tilewright.core.errors import ExecutionError, UnsupportedError


@for_each(
    ("text", "value"),
    [
        ("i * 8 + j", 19),
        ("(-7) // 2", -4),
        ("(-7) % 2", 1),
        ("(-7) / 2", -3),
        ("rem(-7, 2)", -1),
        ("min(i, j) + max(i, j)", 5),
        ("select(i < j, 1, 0)", 1),
        ("select(i != 0, 6 // i, 0)", 3),
        ("select(i == 2, 5, 6 // (i - 2))", 5),
        ("-(i)", -2),
        ("!(i)", -3),
        ("!(i < j)", False),
        ("i << 3 | 1", 17),
        ("i64(i8(200))", -56),
        ("i64(200:u8 + 100:u8)", 44),
        ("i64(-(1:u8))", 255),
        ("i64(i < j)", 1),
        ("bool(i)", True),
        ("i ^ j", 1),
        ("4000000000 * 4000000000", 16 * 10**18),
    ],
)
def test_values(text: str, value: int) -> None:
    e = parse_expr(text)
    assert evaluate(e, {"i": 2, "j": 3}) == value
    assert compile_index(e, ("i", "j"))(2, 3) == value


def test_conditions_are_bools() -> None:
    assert evaluate(parse_expr("i < 3"), {"i": 2}) is True


@given(st.one_of(index_exprs(), conditions()), worlds())
def test_both_ways_agree_with_the_reference(e: Expr, world: World) -> None:
    names = tuple(world.env)
    try:
        expected = meaning(e, world.env)
    except ZeroDivisionError:
        return
    assert evaluate(e, world.env) == expected
    assert compile_index(e, names)(*world.env.values()) == expected


def test_a_missing_value_is_named() -> None:
    e = parse_expr("i + N")
    with pytest.raises(ExecutionError, match="no value for N") as caught:
        evaluate(e, {"i": 1})
    assert caught.value.code == "evaluate.unbound"
    assert "i" in caught.value.help
    with pytest.raises(ExecutionError, match="no value for N"):
        compile_index(e, ("i",))


@for_each("text", ["A[i]", "2.0", "i64(v:f32)", "ramp(i, 1, 4)", "i64(v:f32 < 1.0)"])
def test_other_expressions_are_refused(text: str) -> None:
    from tilewright.core.dtypes import I64

    e = parse_expr(text, {"A": I64})
    for attempt in (lambda: evaluate(e, {"i": 1, "v": 1}), lambda: compile_index(e, ("i", "v"))):
        with pytest.raises(UnsupportedError) as caught:
            attempt()
        assert caught.value.code == "evaluate.node"


def test_deep_expressions_compile() -> None:
    e: Expr = Var("i")
    for n in range(150):
        e = binary("max", e * 2, n)
    assert compile_index(e, ("i",))(1) == evaluate(e, {"i": 1}) == 2**150


def test_equal_parts_are_computed_once_and_functions_are_kept() -> None:
    e: Expr = Var("i")
    for _ in range(60):
        e = e + e
    assert compile_index(e, ("i",))(1) == 2**60
    assert compile_index(e, ("i",)) is compile_index(e, ("i",))
