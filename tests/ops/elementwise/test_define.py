"""How rows of elementwise operators are made."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.arith.expr import TRUE, Var, cast, const
from tilewright.core.dtypes import BF16, BOOL, F16, F32, I32, I64, U8
from tilewright.core.errors import TypeCheckError
from tilewright.ir.graph.nodes import NO_ATTRS
from tilewright.ir.types import tensor
from tilewright.ops.elementwise.define import (
    anything,
    bools,
    broadcast_type,
    check_dtype,
    decided,
    floats,
    integers,
    known,
    numbers,
    wide,
)


def test_kinds_of_types() -> None:
    given = (F32, F16, I32, U8, BOOL)
    assert [floats(d) for d in given] == [True, True, False, False, False]
    assert [integers(d) for d in given] == [False, False, True, True, False]
    assert [numbers(d) for d in given] == [True, True, True, True, False]
    assert [bools(d) for d in given] == [False, False, False, False, True]
    assert all(anything(d) for d in given)
    with pytest.raises(TypeCheckError, match="f: is not defined on bool") as caught:
        check_dtype("f", numbers, BOOL)
    assert caught.value.help == "it takes numbers"


def test_broadcast_type() -> None:
    n = Var("N")
    types = [tensor(F32, n, 1), tensor(F32, 4), None]
    assert broadcast_type("f", floats, None, NO_ATTRS, types) == tensor(F32, n, 4)
    assert broadcast_type("f", floats, BOOL, NO_ATTRS, types) == tensor(BOOL, n, 4)


def test_wide_rounds_once() -> None:
    formula = wide(lambda _, x, y: x * y + y)
    for dtype in (F16, BF16):
        x, y = Var("x", dtype), Var("y", dtype)
        w = cast(F32, y)
        assert formula(NO_ATTRS, x, y) is cast(dtype, cast(F32, x) * w + w)
    x = Var("x", F32)
    assert formula(NO_ATTRS, x, x) is x * x + x


def test_known_keeps_the_shape() -> None:
    rule = known(lambda a, b: a + b)
    scalar, line = np.empty((), dtype=object), np.empty(2, dtype=object)
    scalar[()] = const(3)
    line[:] = [const(1), Var("n")]
    assert rule(NO_ATTRS, [scalar, scalar]).shape == ()
    assert list(rule(NO_ATTRS, [line, scalar])) == [const(4), Var("n") + 3]
    assert rule(NO_ATTRS, [line[:0], scalar]).shape == (0,)


def test_decided() -> None:
    n = Var("n", I64)
    assert decided(n >= 0) is TRUE
    assert decided(n.eq(-1)) is const(0, BOOL)
    assert decided(n < 3) is (n < 3)
