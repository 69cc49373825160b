"""Random numbers: their moments, and that the seed decides."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.onnx_ops import run_onnx
from tilewright.core.errors import UnsupportedError

X = np.arange(5, dtype=np.float32) - 2
MANY = np.ones((40, 50), np.float32)


def test_shapes_and_types() -> None:
    found = run_onnx("RandomUniform", shape=[40, 50], low=2.0, high=3.0, seed=1.5)[0]
    assert found.shape == (40, 50)
    assert found.dtype == np.float32
    assert 2 <= found.min() < 2.01 < 2.99 < found.max() <= 3
    found = run_onnx("RandomNormalLike", MANY, mean=5.0, scale=2.0, dtype=11)[0]
    assert found.dtype == np.float64
    assert abs(found.mean() - 5) < 0.2
    assert run_onnx("RandomUniformLike", MANY.astype("f2"))[0].dtype == np.float16
    assert run_onnx("RandomNormal", shape=[3], dtype=1)[0].shape == (3,)


def test_the_seed_decides() -> None:
    first, again, other = (run_onnx("RandomUniform", shape=[9], seed=s)[0] for s in (1.0, 1.0, 2.0))
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)


def test_bernoulli() -> None:
    found = run_onnx("Bernoulli", MANY * np.float32(0.25), dtype=9, seed=3.0)[0]
    assert found.dtype == np.bool_
    assert abs(found.mean() - 0.25) < 0.03


def test_multinomial() -> None:
    weights = np.log(np.array([[1, 2, 1], [0, 0, 5]], "f4") + 1e-30)
    found = run_onnx("Multinomial", weights, sample_size=2000, seed=1.0, opset=22)[0]
    assert found.shape == (2, 2000)
    assert found.dtype == np.int32
    np.testing.assert_allclose(np.bincount(found[0]) / 2000, [0.25, 0.5, 0.25], atol=0.03)
    assert np.all(found[1] == 2)
    assert run_onnx("Multinomial", weights, dtype=7, opset=22)[0].dtype == np.int64


def test_dropout_does_nothing_in_inference() -> None:
    y, mask = run_onnx("Dropout", X, outputs=2)
    np.testing.assert_array_equal(y, X)
    np.testing.assert_array_equal(mask, np.ones(5, bool))
    assert run_onnx("Dropout", X, outputs=2, opset=7)[1].dtype == np.float32
    np.testing.assert_array_equal(run_onnx("Dropout", X, np.array(0.5, "f4"))[0], X)
    training = {"ratio": np.array(0, np.float32), "training": np.array(True)}
    np.testing.assert_array_equal(run_onnx("Dropout", X, constants=training)[0], X)


def test_dropout_in_training() -> None:
    training = {"ratio": np.array(0.75, np.float32), "training": np.array(True)}
    y, mask = run_onnx("Dropout", MANY, constants=training, outputs=2, seed=4)
    assert abs(mask.mean() - 0.25) < 0.03
    np.testing.assert_array_equal(y, np.where(mask, 4, 0))
    training["ratio"] = np.array(1, np.float32)
    assert not run_onnx("Dropout", MANY * np.inf, constants=training)[0].any()
    old = run_onnx("Dropout", MANY, opset=6, ratio=0.5)[0]
    assert abs((old == 2).mean() - 0.5) < 0.05
    np.testing.assert_array_equal(run_onnx("Dropout", MANY, opset=6, is_test=1)[0], MANY)
    with pytest.raises(UnsupportedError, match="constant"):
        run_onnx("Dropout", X, np.array(0.5, "f4"), np.array(True))
