"""Forms of operators that later versions gave up: attributes that became inputs, and so on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.onnx_ops import run_onnx
from tilewright.core.errors import FrontendError

X = np.random.default_rng(14).standard_normal((2, 3, 4, 4)).astype("f4")


def test_shapes_as_attributes() -> None:
    (found,) = run_onnx("Reshape", X, opset=1, shape=[0, -1, 8], consumed_inputs=[0, 0])
    np.testing.assert_array_equal(found, X.reshape(2, 6, 8))
    (found,) = run_onnx("Pad", X, opset=1, paddings=[0, 0, 1, 0, 0, 0, 0, 2], value=1.5)
    np.testing.assert_array_equal(
        found, np.pad(X, [(0, 0), (0, 0), (1, 0), (0, 2)], constant_values=1.5)
    )
    (found,) = run_onnx("Slice", X, opset=1, starts=[1, -3], ends=[3, 99], axes=[1, 3])
    np.testing.assert_array_equal(found, X[:, 1:3, :, -3:])
    counts = {"tiles": np.array([3]), "axis": np.array([1])}
    (found,) = run_onnx("Tile", X, constants=counts, opset=1)
    np.testing.assert_array_equal(found, np.tile(X, (1, 3, 1, 1)))
    (found,) = run_onnx("Unsqueeze", X, opset=1, axes=[0])
    np.testing.assert_array_equal(run_onnx("Squeeze", found, opset=1, axes=[0])[0], X)


def test_defaults_that_changed() -> None:
    np.testing.assert_array_equal(run_onnx("Concat", X, X, opset=1)[0], np.concatenate([X, X], 1))
    (found,) = run_onnx("Selu", X, opset=1)
    expected = 1.0507 * np.where(X > 0, X, 1.6732 * (np.exp(X.astype("f8")) - 1))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(run_onnx("Clip", X, opset=1, max=0.5)[0], np.minimum(X, 0.5))


def test_types_that_changed() -> None:
    (found,) = run_onnx("Cast", X, opset=1, to="INT32")
    np.testing.assert_array_equal(found, X.astype("i4"))
    with pytest.raises(FrontendError, match="to is 'INT33'"):
        run_onnx("Cast", X, opset=1, to="INT33")
    (found,) = run_onnx("GlobalLpPool", X, opset=1, p=2.0)
    np.testing.assert_allclose(found[..., 0, 0], np.sqrt((X**2).sum((2, 3))), rtol=1e-5)
    with pytest.raises(FrontendError, match="whole number"):
        run_onnx("GlobalLpPool", X, opset=1, p=2.5)


def test_upsample_by_two_scales() -> None:
    (found,) = run_onnx("Upsample", X, opset=1, height_scale=2.0, width_scale=3.0, mode="nearest")
    np.testing.assert_array_equal(found, X.repeat(2, 2).repeat(3, 3))


def test_batch_normalization() -> None:
    rng = np.random.default_rng(15)
    scale, bias, mean = (rng.standard_normal(3).astype("f4") for _ in range(3))
    variance = rng.uniform(0.5, 2, 3).astype("f4")
    parameters = [p[:, None, None] for p in (scale, bias, mean, variance)]
    expected = (X - parameters[2]) / np.sqrt(parameters[3] + 1e-5) * parameters[0] + parameters[1]
    given = (scale, bias, mean, variance)
    (found,) = run_onnx("BatchNormalization", X, *given, opset=6, is_test=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    whole = [np.broadcast_to(p, X.shape[1:]).astype("f4") for p in parameters]
    (found,) = run_onnx("BatchNormalization", X, *whole, opset=6, is_test=1, spatial=0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_batch_normalization_in_training() -> None:
    ones, zeros = np.ones(3, "f4"), np.zeros(3, "f4")
    results = run_onnx("BatchNormalization", X, ones, zeros, zeros, ones, outputs=5, opset=7)
    mean, variance = X.mean((0, 2, 3)), X.var((0, 2, 3))
    np.testing.assert_allclose(results[1], mean * 0.1, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(results[2], variance * 0.1 + 0.9, rtol=1e-4)
    np.testing.assert_allclose(results[3], mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(results[4], variance, rtol=1e-4)
