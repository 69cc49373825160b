"""Broadcasting as versions before 7 wrote it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.onnx_ops import run_onnx
from tilewright.core.errors import FrontendError

RNG = np.random.default_rng(13)
A = RNG.integers(1, 5, (2, 3, 4, 5)).astype("f4")
FUNCTIONS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


@for_each("op", FUNCTIONS)
@for_each("axis", [0, 1, 2, -3])
def test_from_an_axis_on(op: str, axis: int) -> None:
    start = axis % 4
    b = RNG.integers(1, 5, A.shape[start : start + 2]).astype("f4")
    wide = b.reshape(b.shape + (1,) * (4 - start - 2))
    (found,) = run_onnx(op, A, b, opset=6, broadcast=1, axis=axis)
    np.testing.assert_allclose(found, FUNCTIONS[op](A, wide), rtol=1e-6)


def test_without_an_axis_the_last_dimensions() -> None:
    b = A[0, 0]
    np.testing.assert_array_equal(run_onnx("Add", A, b, opset=6, broadcast=1)[0], A + b)
    scalar = np.float32(2).reshape(())
    np.testing.assert_array_equal(run_onnx("Pow", A, scalar, opset=6, broadcast=1, axis=0)[0], A**2)


def test_logic() -> None:
    a, b = A > 2, np.array([True, False, True])
    (found,) = run_onnx("And", a, b, opset=1, broadcast=1, axis=1)
    np.testing.assert_array_equal(found, a & b[:, None, None])
    (found,) = run_onnx("Less", A, np.array([1, 3, 2], "f4"), opset=1, broadcast=1, axis=1)
    np.testing.assert_array_equal(found, np.array([1, 3, 2])[:, None, None] > A)


def test_what_does_not_fit() -> None:
    with pytest.raises(FrontendError, match="from axis 3 on"):
        run_onnx("Add", A, A[0, 0], opset=6, broadcast=1, axis=3)


def test_slopes() -> None:
    slope = np.array([0.5, 1, 2], "f4")
    x = A - 3
    (old,) = run_onnx("PRelu", x, slope, opset=6)
    np.testing.assert_array_equal(old, np.where(x < 0, x * slope[:, None, None], x))
    (shared,) = run_onnx("PRelu", x, slope[:1], opset=6)
    np.testing.assert_array_equal(shared, np.where(x < 0, x * 0.5, x))
    (new,) = run_onnx("PRelu", x, slope[:, None, None], opset=7)
    np.testing.assert_array_equal(new, old)
