"""Quantised operators, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.convert.microsoft_node import RNG, check_ms, normal

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
