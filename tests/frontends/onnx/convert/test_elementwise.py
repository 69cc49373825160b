"""What differs between versions and forms; ONNX's own cases cover the rest."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.onnx_ops import run_onnx
from tilewright.core.errors import ExecutionError, FrontendError

X = np.array([-3.0, -0.5, 0.0, 0.5, 3.0], np.float32)


def test_clip_before_and_since_version_11() -> None:
    old = run_onnx("Clip", X, opset=6, min=-1.0, max=1.0)[0]
    limits = {"low": np.array(-1, np.float32), "high": np.array(1, np.float32)}
    new = run_onnx("Clip", X, constants=limits)[0]
    for found in (old, new):
        np.testing.assert_array_equal(found, np.clip(X, -1, 1))
    np.testing.assert_array_equal(run_onnx("Clip", X, opset=6, max=1.0)[0], np.minimum(X, 1))


def test_variadic() -> None:
    a, b, c = X, X * 2, X[::-1].copy()
    np.testing.assert_allclose(run_onnx("Sum", a, b, c)[0], a + b + c)
    np.testing.assert_allclose(run_onnx("Mean", a, b, c)[0], (a + b + c) / 3, rtol=1e-6)
    np.testing.assert_array_equal(run_onnx("Max", a, b, c)[0], np.maximum(np.maximum(a, b), c))
    np.testing.assert_array_equal(run_onnx("Min", a)[0], a)


def test_gelu_names_its_formulas() -> None:
    assert run_onnx("Gelu", X, approximate="tanh")[0].shape == X.shape
    with pytest.raises(FrontendError, match="approximate is 'fast'"):
        run_onnx("Gelu", X, approximate="fast")


def test_cast_like() -> None:
    found = run_onnx("CastLike", X, np.array(1, np.int64))[0]
    np.testing.assert_array_equal(found, X.astype(np.int64))
    assert found.dtype == np.int64


def test_attributes_reach_the_operator() -> None:
    found = run_onnx("LeakyRelu", X, alpha=0.5)[0]
    np.testing.assert_array_equal(found, np.where(X < 0, X * 0.5, X))
    found = run_onnx("HardSigmoid", X, alpha=0.5, beta=0.25)[0]
    np.testing.assert_array_equal(found, np.clip(X * 0.5 + 0.25, 0, 1))
    found = run_onnx("Mod", X, np.full(5, 2, np.float32), fmod=1)[0]
    np.testing.assert_array_equal(found, np.fmod(X, 2))


@for_each("op", ["Div", "Mod"])
def test_integers_are_not_divided_by_zero(op: str) -> None:
    x = np.array([7, -7, 5], np.int32)
    with pytest.raises(ExecutionError, match="integer division by zero"):
        run_onnx(op, x, np.array([1, 0, 2], np.int32))
    with pytest.raises(FrontendError, match="integer division by zero"):
        run_onnx(op, x, constants={"y": np.array(0, np.int32)})


def test_bit_cast() -> None:
    x = np.array([1.5, -0.0, np.inf], "f4")
    (found,) = run_onnx("BitCast", x, opset=26, to=6)
    np.testing.assert_array_equal(found, x.view("i4"))
