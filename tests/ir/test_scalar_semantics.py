from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.for_each import for_each
from tilewright.arith.operators import BINARY, CALLS
from tilewright.core.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8
from tilewright.ir.scalar_semantics import (
    BINARY_OPS,
    bitcast_value,
    call_value,
    cast_value,
    quiet,
    undefined,
)

FLOATS = st.floats(width=32)


def test_every_operator_has_a_meaning():
    assert set(BINARY_OPS) == set(BINARY)
    with quiet():
        for fn, count in CALLS.items():
            result = call_value(fn, F32, *([np.float32(0.5)] * count))
            assert result.dtype == np.float32


@for_each("op", [op for op in BINARY if op not in ("shl", "shr")])
def test_small_integers_are_pythons(op):
    a, b = (g.ravel() for g in np.meshgrid(np.arange(-9, 10), [-4, -1, 1, 2, 7]))
    expected = [BINARY[op](int(x), int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(BINARY_OPS[op](a, b), expected)


def test_extremes_order_zeros_and_keep_nan():
    a = np.array([0.0, -0.0, np.nan, 1.0, -2.0], np.float32)
    b = np.array([-0.0, 0.0, 1.0, np.nan, 0.0], np.float32)
    least, greatest = BINARY_OPS["min"](a, b), BINARY_OPS["max"](a, b)
    assert np.signbit(least[:2]).all()
    assert not np.signbit(greatest[:2]).any()
    assert np.isnan(least[2:4]).all()
    assert np.isnan(greatest[2:4]).all()
    assert (least[4], greatest[4]) == (-2.0, 0.0)


def _rounded(value: Fraction) -> np.float32:
    """The f32 nearest to an exact value, ties to even, found among the neighbours."""
    near = np.float32(float(value))
    if not np.isfinite(near):
        return near
    around = (near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf)))
    finite = [c for c in around if np.isfinite(c)]
    return min(finite, key=lambda c: (abs(Fraction(float(c)) - value), int(c.view(np.int32)) & 1))


@given(*(st.floats(-1e10, 1e10, width=32),) * 3)
def test_fma_rounds_once(a, b, c):
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    got = call_value("fma", F32, *(np.float32(v) for v in (a, b, c)))
    if exact != 0 and abs(exact) > 2.0**-120:
        assert got == _rounded(exact)


def test_fma_where_rounding_twice_is_wrong():
    a = np.float32(1 + 2.0**-12)
    c = np.float32(2.0**-77)
    exact = Fraction(float(a)) ** 2 + Fraction(float(c))
    assert call_value("fma", F32, a, a, c) == _rounded(exact)
    x = 1 + 2.0**-30
    assert float(call_value("fma", F64, np.float64(x), np.float64(x), np.float64(-1))) == float(
        Fraction(x) ** 2 - 1
    )


@given(FLOATS)
def test_casts_to_integers_truncate_and_saturate(value):
    for dtype in (I8, U8, I32, I64):
        info = np.iinfo(dtype.numpy)
        if math.isnan(value):
            expected = 0
        elif math.isinf(value):
            expected = info.max if value > 0 else info.min
        else:
            expected = min(max(int(value), info.min), info.max)
        assert int(cast_value(np.float32(value), dtype)) == expected


def test_other_casts():
    assert cast_value(np.array([300, -1]), U8).tolist() == [44, 255]
    assert cast_value(np.array([0.0, -0.0, np.nan]), BOOL).tolist() == [False, False, True]
    assert cast_value(np.float32(1.00390625), BF16) == 1.0


def test_bits_of_arrays_that_are_not_contiguous():
    grid = np.arange(6, dtype=np.float32).reshape(2, 3).T
    np.testing.assert_array_equal(bitcast_value(grid, I32), grid.copy().view(np.int32))


@for_each("fn", ["gelu", "erf", "sigmoid", "exp"])
def test_functions_are_rounded_from_double(fn):
    reference = {
        "gelu": lambda v: 0.5 * v * math.erfc(-v / math.sqrt(2)),
        "erf": math.erf,
        "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
        "exp": math.exp,
    }[fn]
    x = np.linspace(-8, 8, 33).astype(np.float32)
    expected = np.array([reference(float(v)) for v in x]).astype(np.float32)
    np.testing.assert_array_equal(call_value(fn, F32, x), expected)


def test_functions_of_integers():
    assert call_value("pow", I32, np.int32([3, -2, 2]), np.int32([4, 3, -1])).tolist() == [
        81,
        -8,
        0,
    ]
    assert call_value("abs", I8, np.int8([-128, -3])).tolist() == [-128, 3]
    assert call_value("floor", I32, np.int32(5)) == 5
    assert call_value("fma", I32, np.int32(2), np.int32(3), np.int32(4)) == 10


@for_each("dtype", [F16, BF16, F32, F64, I8, I16, I32, I64, U8, BOOL])
def test_fresh_memory_is_typed(dtype):
    assert undefined(dtype).dtype == dtype.numpy
