"""Quantisation and its inverse."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.one_node import check, results
from tilewright.core.errors import FrontendError

RNG = np.random.default_rng(0)
TARGETS = (np.uint8, np.int8, np.uint16, np.int16)


def _x(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * 300).astype("f4")


@for_each("target", TARGETS)
def test_one_scale_for_all(target: type) -> None:
    x = _x(5, 7)
    x[0, :3] = np.inf, -np.inf, 1e30
    scale, zero = np.float32(0.03), np.asarray(3, target)
    low, high = np.iinfo(target).min, np.iinfo(target).max
    (found,) = results("QuantizeLinear", {"x": x, "scale": np.asarray(scale), "zero": zero})
    assert found.dtype == target
    expected = np.clip(np.rint(x / scale).astype("f8") + 3, low, high)
    np.testing.assert_array_equal(found, expected.astype(target))
    back = {"x": found, "scale": np.asarray(scale), "zero": zero}
    check("DequantizeLinear", back)


def test_halves_round_to_even_before_the_zero_point_is_added() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5], "f4")
    inputs = {"x": x, "scale": np.array(1, "f4"), "zero": np.array(1, "i1")}
    np.testing.assert_array_equal(results("QuantizeLinear", inputs)[0], [1, 3, 3, 1, -1])


@for_each("axis", [0, 1, -1])
def test_one_scale_a_slice(axis: int) -> None:
    x = _x(3, 5, 7)
    count = x.shape[axis]
    scale = RNG.uniform(0.5, 3, count).astype("f4")
    zero = RNG.integers(-9, 9, count).astype("i1")
    check("QuantizeLinear", {"x": x, "scale": scale, "zero": zero}, axis=axis)
    q = RNG.integers(-128, 128, x.shape).astype("i1")
    check("DequantizeLinear", {"x": q, "scale": scale, "zero": zero}, axis=axis)


@for_each("rows", [6, 5])
def test_one_scale_a_block(rows: int) -> None:
    """The last block may have fewer elements."""
    x = _x(rows, 3)
    scale = RNG.uniform(0.5, 3, (2, 3)).astype("f4")
    zero = RNG.integers(0, 9, (2, 3)).astype("u1")
    blocks = {"scale": np.repeat(scale, 3, 0)[:rows], "zero": np.repeat(zero, 3, 0)[:rows]}
    options = {"axis": 0, "block_size": 3}
    (found,) = results("QuantizeLinear", {"x": x, "scale": scale, "zero": zero}, **options)
    wide = np.clip(np.rint(x / blocks["scale"]) + blocks["zero"], 0, 255)
    np.testing.assert_array_equal(found, wide.astype("u1"))
    (found,) = results("DequantizeLinear", {"x": found, "scale": scale, "zero": zero}, **options)
    np.testing.assert_allclose(found, (wide - blocks["zero"]) * blocks["scale"], rtol=1e-6)


def test_types() -> None:
    """The target by attribute, f16 operands, i32 to be scaled, no zero point."""
    x = _x(4).astype("f2")
    one = np.array(1.5, "f2")
    check("QuantizeLinear", {"x": x, "scale": one}, output_dtype=5)  # int16
    check("QuantizeLinear", {"x": x, "scale": one}, precision=1, opset=23)
    assert results("QuantizeLinear", {"x": x, "scale": one}, opset=13)[0].dtype == np.uint8
    integers = RNG.integers(-(2**20), 2**20, 9).astype("i4")
    check("DequantizeLinear", {"x": integers, "scale": np.array(0.25, "f4")})
    check("DequantizeLinear", {"x": integers.astype("i1"), "scale": one})


def test_empty() -> None:
    inputs = {"x": np.zeros((0, 3), "f4"), "scale": np.ones(3, "f4"), "zero": np.ones(3, "u1")}
    assert results("QuantizeLinear", inputs)[0].shape == (0, 3)


def test_a_scale_of_no_fitting_shape() -> None:
    inputs = {"x": _x(3, 4), "scale": np.ones((3, 4), "f4")}
    with pytest.raises(FrontendError, match="one number a slice"):
        results("QuantizeLinear", inputs)
