from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.arith.expr import (
    TRUE,
    Binary,
    Bitcast,
    Call,
    Load,
    Reduce,
    Select,
    Unary,
    Var,
    const,
)
from tilewright.arith.vector import Ramp, Shuffle
from tilewright.core.dtypes import BOOL, F32, F64, I32, I64
from tilewright.ir.verify_expr import Fault, check_expr, check_name

I = Var("i")  # noqa: E741
X = Load("x", (I,), F32)
PAIR = Ramp(I, 1, 2)
BUFFERS = {"x": (F32, 1)}


@for_each(
    "e",
    [
        X + 1.0,
        Shuffle(PAIR, PAIR, (3, 0, 1)),
        Select(I < 3, X, X),
        Call("isnan", (X,), BOOL),
        Bitcast(I32, X),
        Reduce("any", ((I, const(4)),), X < 0.0),
        Load("x", (I,), F32, TRUE),
    ],
)
def test_good_expressions(e):
    check_expr(e, BUFFERS, set())


@for_each(
    ("e", "code", "message"),
    [
        (Binary("add", X, I), "expr.dtype", "operands of add are f32 and i64"),
        (Binary("hypot", X, X), "expr.operator", "no operator 'hypot'"),
        (Binary("shl", X, X), "expr.dtype", "shl of f32"),
        (Unary("not", X), "expr.dtype", "not of f32"),
        (Unary("neg", TRUE), "expr.dtype", "neg of bool"),
        (Unary("abs", X), "expr.operator", "no operator 'abs'"),
        (Call("exp", (X, X), F32), "expr.operator", "no function 'exp' of 2 arguments"),
        (Call("pow", (X, I), F32), "expr.dtype", "arguments of pow are f32, i64"),
        (Call("isnan", (X,), F32), "expr.dtype", "the result of isnan must be bool"),
        (Select(I, X, X), "expr.dtype", "the condition of a select must be bool, i is i64"),
        (Select(TRUE, X, I), "expr.dtype", "the second choice of this select must be f32"),
        (Bitcast(F64, X), "expr.dtype", "bits of f32 cannot be read as f64"),
        (Load("y", (I,), F32), "expr.buffer", "no buffer 'y' here"),
        (Load("x", (I, I), F32), "expr.rank", "'x' has 1 dimensions, it is indexed with 2"),
        (Load("x", (X,), F32), "expr.dtype", "an index of 'x' must be i64"),
        (Load("x", (I,), F64), "expr.dtype", "'x' holds f32, the load x[i] says f64"),
        (Load("x", (I,), F32, I), "expr.dtype", "a mask must be bool, i is i64"),
        (Reduce("mean", ((I, const(4)),), X), "expr.operator", "no reduction 'mean'"),
        (Reduce("all", ((I, const(4)),), X), "expr.dtype", "the body of all must be bool"),
        (Reduce("sum", ((I, const(4, I32)),), X), "expr.dtype", "the extent of a reduction axis"),
        (
            Shuffle(PAIR, Ramp(I, 1, 4), (0,)),
            "expr.shuffle",
            "ramp(i, 1, 2) and ramp(i, 1, 4) are not",
        ),
        (Shuffle(PAIR, PAIR, (0, 4)), "expr.shuffle", "two vectors of 2 have no such elements"),
    ],
)
def test_faults(e, code, message):
    with pytest.raises(Fault) as caught:
        check_expr(e, BUFFERS, set())
    assert caught.value.code == code
    assert caught.value.message.startswith(message)


def test_what_was_seen_is_not_checked_again():
    bad = Load("y", (I,), I64)
    check_expr(bad, BUFFERS, {bad})


@for_each("name", ["", "2x", "a-b", "nan", "x y"])
def test_illegal_names(name):
    with pytest.raises(Fault, match="cannot name a loop"):
        check_name(name, "loop", set())


def test_names_are_taken_once():
    taken: set[str] = set()
    check_name("i.0", "loop", taken)
    with pytest.raises(Fault, match="taken twice"):
        check_name("i.0", "loop", taken)
