from __future__ import annotations

import math

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.dtypes import BOOL, F32, I8, I32, I64, U8
from tilewright.core.errors import ExecutionError
from tilewright.ir.loop.interp import support


@for_each("a", [-7, -1, 0, 5, 8])
@for_each("b", [-3, -1, 0, 1, 4])
def test_divisions(a, b):
    assert support.div(a, b) == (math.trunc(a / b) if b else 0)
    assert support.rem(a, b) == (int(math.fmod(a, b)) if b else 0)
    assert support.floordiv(a, b) == (a // b if b else 0)
    assert support.mod(a, b) == (a % b if b else 0)


@for_each(
    ("value", "dtype", "expected"),
    [
        (1.9, I32, 1),
        (-1.9, I32, -1),
        (math.nan, I32, 0),
        (math.inf, I8, 127),
        (-math.inf, I8, -128),
        (-3.0, U8, 0),
        (1e30, I64, (1 << 63) - 1),
    ],
)
def test_floats_become_integers_saturated(value, dtype, expected):
    assert support.float_to_int(value, dtype) == expected
    assert int(support.cast_value(np.array(value), dtype)) == expected


def test_large_integers_round_once():
    # Rounded to f64 first, the value would lie halfway and then round to even, downward.
    value = (1 << 60) + (1 << 36) + 1
    assert int(support.to_float(value, np.float32)) == (1 << 60) + (1 << 37)


def test_bits():
    assert support.bitcast(np.float32(1.0), F32, I32) == 0x3F800000
    assert support.bitcast(0x3F800000, I32, F32) == 1.0


def test_calls_give_what_the_interpreter_holds():
    assert isinstance(support.call("isnan", BOOL, F32, np.float32(1)), bool)
    assert isinstance(support.call("abs", I32, I32, -3), int)
    assert isinstance(support.call("exp", F32, F32, np.float32(0)), np.float32)


def test_lanes_write_in_order():
    y = np.zeros(3, np.float32)
    support.store_lanes("y", y, (np.array([1, 1, 9]),), [1, 2, 3], [True, True, False], 3, "")
    assert y.tolist() == [0, 2, 0]
    assert support.load_lanes(
        "y", y, (np.array([1, 7, 0]),), [True, False, True], 3, ""
    ).tolist() == [
        2,
        0,
        0,
    ]
    with pytest.raises(ExecutionError, match=r"y\[9\] is outside"):
        support.load_lanes("y", y, (np.array([1, 1, 9]),), True, 3, "")
