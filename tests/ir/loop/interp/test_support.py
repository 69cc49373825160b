from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.for_each import for_each
from tilewright.core.dtypes import BOOL, F32, I8, I32, I64, U8
from tilewright.core.errors import ExecutionError
from tilewright.ir.loop.interp import support
from tilewright.ir.scalar_semantics import call_value, quiet


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


@given(*(st.floats(width=32) for _ in range(3)))
@example(1 + 2**-12, 1 + 2**-12, 2**-80)  # rounding in f64 first would give another result
@example(1e30, 1e30, 1.0)
@example(0.0, -1.0, 0.0)
def test_fma_rounds_once(a: float, b: float, c: float):
    args = [np.float32(x) for x in (a, b, c)]
    with quiet():
        found, expected = support.call("fma", F32, F32, *args), call_value("fma", F32, *args)
    assert isinstance(found, np.float32)
    np.testing.assert_array_equal(found, expected)
    assert np.signbit(found) == np.signbit(expected) or np.isnan(found)


def test_lanes_write_in_order():
    y = np.zeros(3, np.float32)
    twice, chosen = np.array([1, 1, 9]), np.array([True, True, False])
    support.store_lanes("y", y, (twice,), np.array([1, 2, 3]), chosen, 3, "")
    assert y.tolist() == [0, 2, 0]
    support.store_lanes("y", y, (np.array([2, 2, 0]),), np.array([3, 4, 5]), True, 3, "")
    assert y.tolist() == [5, 2, 4]


def test_lanes_that_are_masked_read_zero():
    y = np.array([5, 2, 4], np.float32)
    places, chosen = np.array([1, 7, 0]), np.array([True, False, True])
    assert support.load_lanes("y", y, (places,), chosen, 3, "").tolist() == [2, 0, 5]
    assert support.load_lanes("y", y, (places,), False, 3, "").tolist() == [0, 0, 0]
    places.fill(2)
    assert support.load_lanes("y", y, (places,), True, 3, "").tolist() == [4, 4, 4]


def test_scalar_indices_are_those_of_every_lane():
    y = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert support.load_lanes("y", y, (1, np.array([2, 0])), True, 2, "").tolist() == [5, 3]
    assert support.load_lanes("y", y, (1, 2), True, 2, "").tolist() == [5, 5]
    support.store_lanes("y", y, (0, 1), np.array([7, 8]), True, 2, "")
    assert y[0].tolist() == [0, 8, 2]


@for_each("wrong", [-1, 3])
@for_each("mask", [True, np.array([False, True])], ids=str)
def test_lanes_outside_are_named(wrong: int, mask: object):
    y = np.zeros((2, 3), np.float32)
    with pytest.raises(ExecutionError, match=rf"y\[1, {wrong}\] is outside"):
        support.load_lanes("y", y, (1, np.array([0, wrong])), mask, 2, "")
    with pytest.raises(ExecutionError, match=rf"y\[{wrong}, 2\] is outside"):
        support.store_lanes("y", y, (wrong, np.array([0, 2])), 1.0, np.array([False, True]), 2, "")
