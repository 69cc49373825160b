"""Attributes of logic operators."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.onnx_ops import run_onnx
from tilewright.core.errors import FrontendError


def test_shift() -> None:
    x, n = np.array([1, 12], np.uint32), np.array([3, 2], np.uint32)
    np.testing.assert_array_equal(run_onnx("BitShift", x, n, direction="LEFT")[0], [8, 48])
    np.testing.assert_array_equal(run_onnx("BitShift", x, n, direction="RIGHT")[0], [0, 3])
    with pytest.raises(FrontendError, match="direction is 'UP'"):
        run_onnx("BitShift", x, n, direction="UP")


def test_infinities() -> None:
    x = np.array([np.inf, -np.inf, 1, np.nan], np.float32)
    np.testing.assert_array_equal(run_onnx("IsInf", x)[0], [True, True, False, False])
    found = run_onnx("IsInf", x, detect_positive=0)[0]
    np.testing.assert_array_equal(found, [False, True, False, False])


@pytest.mark.parametrize(
    ("op", "reference"),
    [("Equal", np.equal), ("LessOrEqual", np.less_equal), ("Greater", np.greater)],
)
def test_comparison(op: str, reference: np.ufunc) -> None:
    a, b = np.array([1, 2, 3]), np.array([[2], [3]])
    np.testing.assert_array_equal(run_onnx(op, a, b)[0], reference(a, b))
