"""Activation functions against NumPy, at ordinary and at extreme values."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.errors import TypeCheckError
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs
from tilewright.ops.elementwise.activation import (
    AlphaAttrs,
    GeluAttrs,
    HardSigmoidAttrs,
    SeluAttrs,
    ShrinkAttrs,
)

X = np.array([0.0, -0.0, 0.1, -0.1, 1.0, -1.0, 3.5, -3.5, 1e-6, -1e-6, 30, -30], np.float64)
EXTREME = np.array([-1e30, 1e30, np.inf, -np.inf, np.nan, 1e-40, -100.0, 100.0], np.float64)
erfc = np.vectorize(math.erfc, otypes="d")


def _hard_sigmoid(x: np.ndarray, a: float, b: float) -> np.ndarray:
    return np.maximum(0, np.minimum(1, a * x + b))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


def _tanh_gelu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _selu(x: np.ndarray) -> np.ndarray:
    a = SeluAttrs()
    return np.where(x > 0, a.gamma * x, a.gamma * a.alpha * np.expm1(x))


CASES: list[tuple[str, Attrs, Callable[[np.ndarray], np.ndarray]]] = [
    ("relu", NO_ATTRS, lambda x: np.maximum(x, 0)),
    ("leaky_relu", AlphaAttrs(0.1), lambda x: np.where(x < 0, 0.1 * x, x)),
    ("elu", AlphaAttrs(1.5), lambda x: np.where(x > 0, x, 1.5 * np.expm1(x))),
    ("celu", AlphaAttrs(2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    ("selu", SeluAttrs(), _selu),
    ("sigmoid", NO_ATTRS, lambda x: 1 / (1 + np.exp(-x))),
    ("softplus", NO_ATTRS, _softplus),
    ("softsign", NO_ATTRS, lambda x: x / (1 + np.abs(x))),
    ("hard_sigmoid", HardSigmoidAttrs(), lambda x: _hard_sigmoid(x, 0.2, 0.5)),
    ("hard_swish", NO_ATTRS, lambda x: x * _hard_sigmoid(x, 1 / 6, 0.5)),
    ("gelu", GeluAttrs(), lambda x: 0.5 * x * erfc(-x / math.sqrt(2))),
    ("gelu", GeluAttrs(tanh=True), _tanh_gelu),
    ("mish", NO_ATTRS, lambda x: x * np.tanh(_softplus(x))),
    ("swish", AlphaAttrs(1.0), lambda x: x / (1 + np.exp(-x))),
    ("swish", AlphaAttrs(1.7), lambda x: x / (1 + np.exp(-1.7 * x))),
    ("thresholded_relu", AlphaAttrs(0.5), lambda x: np.where(x > 0.5, x, 0)),
    (
        "shrink",
        ShrinkAttrs(0.5, 0.2),
        lambda x: np.where(x < -0.5, x + 0.2, np.where(x > 0.5, x - 0.2, 0)),
    ),
]
IDS = [f"{name}-{attrs}" for name, attrs, _ in CASES]


@for_each(("name", "attrs", "reference"), CASES, ids=IDS)
@for_each("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_ordinary_values(
    name: str, attrs: Attrs, reference: Callable[[np.ndarray], np.ndarray], dtype: str
) -> None:
    x = X.astype(np.dtype(dtype))
    found = run_op(name, x, attrs=attrs)
    with np.errstate(all="ignore"):
        expected = reference(x.astype("f8"))
    eps = float(ml_dtypes.finfo(x.dtype).eps)
    tiny = float(ml_dtypes.finfo(x.dtype).smallest_subnormal)
    np.testing.assert_allclose(found.astype("f8"), expected, rtol=4 * eps, atol=eps * 1e-3 + tiny)


@for_each(("name", "attrs", "reference"), CASES, ids=IDS)
def test_extreme_values(
    name: str, attrs: Attrs, reference: Callable[[np.ndarray], np.ndarray]
) -> None:
    x = EXTREME.astype("f4")
    with np.errstate(all="ignore"):
        expected = reference(x.astype("f8")).astype("f4")
    # Infinity times zero, which the formulas with a product meet at minus infinity.
    expected = np.where(np.isneginf(x) & np.isnan(expected), 0, expected)
    found = run_op(name, x, attrs=attrs)
    found = np.where(np.isneginf(x) & np.isnan(found), 0, found)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-30)


def test_integers() -> None:
    x = np.array([-3, 0, 5], np.int32)
    np.testing.assert_array_equal(run_op("relu", x), [0, 0, 5])
    shrunk = run_op("shrink", x, attrs=ShrinkAttrs(1.5, 1.0))
    np.testing.assert_array_equal(shrunk, [-2, 0, 4])
    with pytest.raises(TypeCheckError, match="gelu: is not defined on i32"):
        run_op("gelu", x, attrs=GeluAttrs())


@for_each("dtype", ["float32", "int8", "uint8", "int64", "float16"])
def test_clip(dtype: str) -> None:
    x = np.array([0, 2, 5, 90, 3], dtype)
    low, high = np.array(2, dtype), np.array(4, dtype)
    np.testing.assert_array_equal(run_op("clip", x, low, high), np.clip(x, 2, 4))
    np.testing.assert_array_equal(run_op("clip", x, low), np.maximum(x, 2))
    np.testing.assert_array_equal(run_op("clip", x, None, high), np.minimum(x, 4))
    np.testing.assert_array_equal(run_op("clip", x), x)
    # The upper limit wins.
    np.testing.assert_array_equal(run_op("clip", x, high, low), np.full(5, 2, dtype))


def test_clip_keeps_nan_and_wants_scalars() -> None:
    x = np.array([np.nan, np.inf, -np.inf], np.float32)
    one = np.array(1, np.float32)
    np.testing.assert_array_equal(run_op("clip", x, -one, one), [np.nan, 1, -1])
    with pytest.raises(TypeCheckError, match="limits are scalars"):
        run_op("clip", x, np.ones(3, np.float32))


def test_prelu() -> None:
    x = np.arange(-6, 6, dtype=np.float32).reshape(2, 3, 2)
    slope = np.array([[0.1], [0.2], [0.3]], np.float32)
    found = run_op("prelu", x, slope, dims=[("N", "C", "W"), ("C", 1)])
    np.testing.assert_array_equal(found, np.where(x < 0, x * slope, x))
    with pytest.raises(TypeCheckError, match="does not broadcast to"):
        run_op("prelu", slope, x)
