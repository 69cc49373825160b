from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.dtypes import F32, I32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.reduction.softmax import FULLY_MASKED, AxisAttrs, SoftmaxAttrs
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(7)
LAST = SoftmaxAttrs(-1)
ZERO, FINITE = (SoftmaxAttrs(-1, fully_masked=how) for how in ("zero", "finite"))
OPS = ("softmax", "log_softmax", "hardmax")


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@for_each("axis", [0, 1, 2, -1])
def test_against_numpy(axis: int) -> None:
    x = (RNG.standard_normal((3, 5, 7)) * 20).astype(np.float32)
    expected = softmax(x, axis)
    for how in FULLY_MASKED:
        found = run_op("softmax", x, attrs=SoftmaxAttrs(axis, fully_masked=how))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)
    attrs = AxisAttrs(axis)
    logs = run_op("log_softmax", x, attrs=attrs, dims=[("A", "B", "C")])
    np.testing.assert_allclose(logs, np.log(expected), rtol=1e-5, atol=1e-5)
    hard = run_op("hardmax", x, attrs=attrs)
    np.testing.assert_array_equal(hard, x == x.max(axis, keepdims=True))


@for_each("op", OPS)
def test_empty_and_single(op: str) -> None:
    first, second = (make_attrs(op, {"axis": axis}) for axis in (0, 1))
    assert run_op(op, np.zeros((3, 0), np.float32), attrs=first).shape == (3, 0)
    assert run_op(op, np.zeros((0, 4), np.float32), attrs=second).shape == (0, 4)
    expected = 0 if op == "log_softmax" else 1
    np.testing.assert_array_equal(run_op(op, np.array([[7.0]]), attrs=second), [[expected]])


def test_large_values_do_not_overflow() -> None:
    x = np.array([[1e4, 1e4, -1e4], [-1e38, -1e38, -1e38]], np.float32)
    np.testing.assert_allclose(
        run_op("softmax", x, attrs=LAST), [[0.5, 0.5, 0], [1 / 3] * 3], rtol=1e-6
    )
    logs = run_op("log_softmax", x, attrs=AxisAttrs(-1))
    np.testing.assert_allclose(logs[0], [-np.log(2), -np.log(2), -2e4 - np.log(2)], rtol=1e-6)


def test_narrow_floats_are_summed_wide() -> None:
    x = np.zeros((1, 20000), np.float16)
    np.testing.assert_array_equal(run_op("softmax", x, attrs=LAST), np.full_like(x, 1 / 20000))
    logs = run_op("log_softmax", x, attrs=AxisAttrs(-1))
    np.testing.assert_array_equal(logs, np.full_like(x, -np.log(20000)))


def test_infinities_and_nan() -> None:
    x = np.array([[0, -np.inf, 0], [-np.inf] * 3, [1, np.nan, 2]], np.float32)
    masked = run_op("softmax", x, attrs=ZERO)
    np.testing.assert_array_equal(masked[:2], [[0.5, 0, 0.5], [0, 0, 0]])
    assert np.isnan(masked[2]).all()
    plain = run_op("softmax", x, attrs=LAST)
    np.testing.assert_array_equal(plain[0], [0.5, 0, 0.5])
    assert np.isnan(plain[1:]).all()


def test_finite_softmax_is_softmax_without_nan() -> None:
    inf, nan = np.inf, np.nan
    x = np.array(
        [[0, -inf, 0], [-inf] * 3, [1, nan, 2], [1, inf, 2], [nan] * 3, [1, 2, 3], [inf, -inf, 0]],
        np.float32,
    )
    plain = run_op("softmax", x, attrs=LAST)
    expected = np.where(np.isnan(plain), np.float32(0), plain)
    np.testing.assert_array_equal(run_op("softmax", x, attrs=FINITE), expected)


def test_hardmax_takes_the_first() -> None:
    x = np.array([[1, 3, 3, 2], [5, 5, 5, 5]], np.float32)
    found = run_op("hardmax", x, attrs=AxisAttrs(-1))
    np.testing.assert_array_equal(found, [[0, 1, 0, 0], [1, 0, 0, 0]])


def test_hardmax_takes_nan_for_the_greatest() -> None:
    x = np.array([[1, np.nan, np.nan], [np.inf, 2, np.nan], [np.nan] * 3], np.float32)
    right = np.eye(3)[np.argmax(x, -1)]
    np.testing.assert_array_equal(run_op("hardmax", x, attrs=AxisAttrs(-1)), right)


@for_each("op", OPS)
def test_refusals(op: str) -> None:
    infer = get_op(op).infer
    with pytest.raises(TypeCheckError, match="axis 2"):
        infer(make_attrs(op, {"axis": 2}), [tensor(F32, 3, 4)])
    with pytest.raises(TypeCheckError, match="it takes floats"):
        infer(make_attrs(op, {"axis": 0}), [tensor(I32, 3, 4)])


def test_unknown_results_of_masked_rows_are_refused() -> None:
    with pytest.raises(TypeCheckError, match="no 'one' for masked rows"):
        get_op("softmax").infer(SoftmaxAttrs(0, "one"), [tensor(F32, 3, 4)])
