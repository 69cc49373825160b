from __future__ import annotations

import copy
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arith.reference import meaning
from tests.arith.strategies import INTEGERS, literals, typed_exprs
from tests.for_each import for_each
from tilewright.arith.dtype_limits import highest, lowest
from tilewright.arith.expr import (
    FALSE,
    TRUE,
    Binary,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
    Unary,
    Var,
    as_expr,
    as_int,
    binary,
    call,
    cast,
    ceildiv,
    const,
    maximum,
    minimum,
    product,
    select,
    unary,
    wrap,
)
from tilewright.arith.operators import CALLS
from tilewright.arith.vector import Ramp
from tilewright.core.dtypes import BOOL, F16, F32, I8, I32, I64, U8, DType

ROW, COL = Var("i"), Var("j")
X = Var("x", F32)


def test_equal_expressions_are_one_object() -> None:
    assert ROW * 8 + COL is ROW * 8 + COL
    assert Var("i") is Var("i", I64) is Var(name="i")
    assert Var("i") is not Var("i", I32)
    assert Load("A", (ROW,), F32) is Load("A", (ROW,), F32, None)
    assert {ROW + COL: 1}[ROW + COL] == 1


def test_literals_are_told_apart_by_bits_and_dtype() -> None:
    assert Const(0.0, F32) is not Const(-0.0, F32)
    assert Const(math.nan, F32) is Const(math.nan, F32)
    assert Const(1, I64) is not Const(1, I32)
    assert const(1, F32) is Const(1.0, F32)
    assert const(1, BOOL) is TRUE


def test_nodes_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        ROW.name = "j"  # type: ignore[misc]


def test_unused_expressions_are_forgotten() -> None:
    before = len(Expr._table)
    for n in range(100):
        Var(f"only here {n}")
    assert len(Expr._table) <= before + 1


@for_each(
    ("built", "expected"),
    [
        (ROW + 0, ROW),
        (0 + ROW, ROW),
        (ROW - 0, ROW),
        (ROW * 1, ROW),
        (ROW * 0, const(0)),
        (ROW // 1, ROW),
        (const(7) // -2, const(-4)),
        (const(7) % -2, const(-1)),
        (binary("div", -7, 2), const(-3)),
        (binary("rem", -7, 2), const(-1)),
        (TRUE & (ROW < COL), ROW < COL),
        (FALSE | (ROW < COL), ROW < COL),
        (FALSE & (ROW < COL), FALSE),
        (const(100, I8) + const(100, I8), const(-56, I8)),
        (const(1, U8) - const(2, U8), const(255, U8)),
        (const(3) < const(4), TRUE),
        (-const(3), const(-3)),
        (unary("not", const(0, U8)), const(255, U8)),
        (unary("not", TRUE), FALSE),
        (minimum(2, 3), const(2)),
        (maximum(2, 3), const(3)),
        (select(TRUE, ROW, COL), ROW),
        (select(ROW < COL, ROW, ROW), ROW),
        (cast(I64, ROW), ROW),
        (cast(F32, const(2)), const(2.0, F32)),
        (ceildiv(9, 4), const(3)),
        (product(()), const(1)),
        (product((ROW, const(2))), ROW * 2),
    ],
)
def test_operators_fold(built: Expr, expected: Expr) -> None:
    assert built is expected


@for_each(
    "kept",
    [
        X + 0.0,
        X * 0.0,
        X - X,
        const(1) // 0,
        const(1) % 0,
        const(1) << -1,
        const(1) << 64,
        binary("shr", const(1, I8), const(9, I8)),
    ],
)
def test_operators_do_not_fold(kept: Expr) -> None:
    assert isinstance(kept, Binary)


def test_comparisons_build_conditions() -> None:
    assert (ROW > COL) is (COL < ROW)
    assert (ROW >= COL) is (COL <= ROW)
    assert all(c.dtype == BOOL for c in (ROW < COL, ROW <= COL, ROW.eq(COL), ROW.ne(COL), X < X))
    assert (ROW == COL) is False


def test_dtypes_are_those_of_the_operands() -> None:
    assert (X + 1).dtype == F32
    assert Unary("neg", X).dtype == F32
    assert Select(TRUE, X, X).dtype == F32
    assert Reduce("sum", ((ROW, COL),), X).dtype == F32
    assert Ramp(ROW, 1, 4).dtype == I64
    assert call("isnan", X).dtype == BOOL
    assert Cast(F16, X).dtype == F16


def test_lanes() -> None:
    ramp = Ramp(ROW, 1, 4)
    assert (ROW + COL).lanes == 1
    assert ramp.lanes == 4
    assert (ramp + COL).lanes == 4
    assert Load("A", (ROW, ramp), F32).lanes == 4
    assert Broadcast(X, 8).lanes == 8


def test_lanes_of_shared_parts_take_no_exponential_time() -> None:
    e: Expr = X
    for _ in range(200):
        e = e + e
    assert e.lanes == 1


def test_folding_keeps_the_lanes() -> None:
    ramp, mask = Ramp(ROW, 1, 4), Broadcast(Var("p", BOOL), 4)
    assert (ramp * 0).lanes == 4
    assert (mask & FALSE).lanes == 4
    assert (mask | TRUE).lanes == 4
    assert select(mask, ROW, ROW).lanes == 4
    assert select(TRUE, ROW, ramp).lanes == 4


@given(st.sampled_from(INTEGERS).flatmap(lambda d: st.tuples(literals(d), literals(d))))
def test_integer_folding_wraps(pair: tuple[Const, Const]) -> None:
    a, b = pair
    for op in ("add", "sub", "mul", "min", "max", "and", "or", "xor", "lt", "le", "eq", "ne"):
        folded = binary(op, a, b)
        assert isinstance(folded, Const)
        assert folded.value == meaning(Binary(op, a, b), {})


@given(st.sampled_from(INTEGERS), st.integers())
def test_wrap_keeps_the_low_bits(dtype: DType, value: int) -> None:
    wrapped = wrap(value, dtype)
    assert (wrapped - value) % (1 << dtype.bits) == 0
    assert lowest(dtype).value <= wrapped <= highest(dtype).value


def test_calls_check_their_arguments() -> None:
    assert call("fma", X, X, X) is Call("fma", (X, X, X), F32)
    assert CALLS["fma"] == 3
    with pytest.raises(AssertionError):
        call("exp", X, X)
    with pytest.raises(AssertionError):
        binary("add", ROW, X)


def test_numbers_become_literals() -> None:
    assert as_expr(2, F32) is const(2.0, F32)
    assert as_expr(ROW) is ROW
    assert as_int(const(3)) == 3
    assert as_int(ROW) is None
    assert as_int(const(3.0, F32)) is None


def test_repr_is_the_text() -> None:
    assert repr(ROW + COL) == "`i + j`"
    assert str(ROW + COL) == "i + j"


@given(typed_exprs())
def test_copies_are_the_same_object(e: Expr) -> None:
    assert copy.deepcopy(e) is e
    assert pickle.loads(pickle.dumps(e)) is e
