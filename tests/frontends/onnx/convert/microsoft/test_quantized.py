"""Quantised operators, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.convert.microsoft.microsoft_node import RNG, check_ms, normal, run_ms
from tilewright.core.errors import UnsupportedError

A, B = (RNG.integers(0, 256, (3, 4)).astype("u1") for _ in range(2))
W = RNG.integers(-128, 128, (4, 5)).astype("i1")


def _scale(value: float) -> np.ndarray:
    return np.array(value, "f4")


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_arithmetic(op: str) -> None:
    """Halves may be rounded otherwise where the order of multiplications differs."""
    zeros = [np.array(z, "u1") for z in (128, 100, 120)]
    inputs = [A, _scale(0.1), zeros[0], B, _scale(0.05), zeros[1], _scale(0.2), zeros[2]]
    check_ms(op, inputs, constants=(1, 2, 4, 5, 6, 7), atol=1)


def test_functions() -> None:
    inputs = [A, _scale(0.05), np.array(128, "u1"), _scale(0.004), np.array(0, "u1")]
    check_ms("QLinearSigmoid", inputs, constants=(1, 2, 3, 4), atol=1)


def test_products_scaled_to_floats() -> None:
    zeros = [np.array(128, "u1"), np.array(3, "i1")]
    inputs = [A, W, _scale(0.1), _scale(0.05), *zeros, normal(5)]
    check_ms("MatMulIntegerToFloat", inputs)
    columns = RNG.uniform(0.1, 1, 5).astype("f4")
    check_ms("MatMulIntegerToFloat", [A, W, _scale(0.1), columns, zeros[0]])


def test_products_of_floats_quantised_on_the_way() -> None:
    zero = np.array(3, "i1")
    check_ms("DynamicQuantizeMatMul", [normal(3, 4), W, _scale(0.05), zero, normal(5)])
    check_ms("DynamicQuantizeMatMul", [np.zeros((3, 4), "f4"), W, _scale(0.05)])


def test_images() -> None:
    x, other = (RNG.integers(0, 256, (2, k, 4, 4)).astype("u1") for k in (3, 5))
    zero, one = np.array(128, "u1"), np.array(100, "u1")
    inputs = [x, _scale(0.05), zero, _scale(0.04), one]
    check_ms("QLinearLeakyRelu", inputs, constants=(1, 2, 3, 4), alpha=0.1, atol=1)
    check_ms("QLinearGlobalAveragePool", inputs, constants=(1, 2, 3, 4), atol=1)
    joined = [_scale(0.05), one, x, _scale(0.05), zero, other, _scale(0.02), one]
    check_ms("QLinearConcat", joined, constants=(0, 1, 3, 4, 6, 7), axis=1, atol=1)


def test_quantisation_under_another_domain() -> None:
    zero = np.array(100, "u1")
    check_ms("QuantizeLinear", [normal(3, 4), _scale(0.05), zero])
    check_ms("DequantizeLinear", [A, _scale(0.05), zero])


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("depth", "block"), [(32, 16), (40, 16), (64, 32)])
@pytest.mark.parametrize("zeros", ["none", "packed", "floats"])
def test_weights_of_a_few_bits(bits: int, depth: int, block: int, zeros: str) -> None:
    """A block's last byte and the last block may hold more than there is."""
    columns, blocks = 3, -(-depth // block)
    digits = RNG.integers(0, 1 << bits, (columns, blocks, block))
    scales = RNG.uniform(0.1, 1, columns * blocks).astype("f4")
    middle = np.full((columns, blocks), 1 << (bits - 1))
    points = middle if zeros == "none" else RNG.integers(0, 1 << bits, (columns, blocks))
    given = {"none": [], "packed": [_packed(points, bits)], "floats": [points.astype("f4")]}[zeros]
    x = normal(2, depth)
    inputs = [x, _packed(digits, bits), scales, *given]
    options = {"bits": bits, "block_size": block, "K": depth, "N": columns}
    (found,) = run_ms("MatMulNBits", inputs, constants=(1, 2, 3), **options)
    w = (digits - points[..., None]) * scales.reshape(columns, blocks, 1)
    expected = x @ w.reshape(columns, -1)[:, :depth].T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def _packed(digits: np.ndarray, bits: int) -> np.ndarray:
    """Numbers side by side in bytes, the first in the lowest bits."""
    parts = 8 // bits
    rest = -digits.shape[-1] % parts
    wide = np.pad(digits, [(0, 0)] * (digits.ndim - 1) + [(0, rest)])
    groups = wide.reshape(*wide.shape[:-1], -1, parts) << (np.arange(parts) * bits)
    return groups.sum(-1).astype("u1")


def test_refusals() -> None:
    inputs = [normal(2, 16), np.zeros((3, 1, 8), "u1"), np.ones(3, "f4")]
    with pytest.raises(UnsupportedError, match="weights of 3 bits"):
        run_ms("MatMulNBits", inputs, bits=3, block_size=16, K=16, N=3)
    indices = [None, np.zeros(16, "i4")]
    with pytest.raises(UnsupportedError, match="g_idx"):
        run_ms("MatMulNBits", [*inputs, *indices], bits=4, block_size=16, K=16, N=3)
