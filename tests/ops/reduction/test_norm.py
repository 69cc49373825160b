from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.dtypes import F16, F32, I32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.reduction.norm import (
    LayerNormAttrs,
    LpNormAttrs,
    LrnAttrs,
    MeanVarianceAttrs,
    RmsNormAttrs,
)
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(10)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def layer_norm(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    x = x.astype(np.float64)
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)


@for_each("axis", [0, 1, 2, -1, -2])
@for_each("bias", [False, True])
def test_layer_norm(axis: int, bias: bool) -> None:
    x = normal(3, 5, 7) * 4 + 2
    axes = tuple(range(axis % 3, 3))
    scale, offset = normal(*x.shape[axis:]), normal(*x.shape[axis:])
    expected = layer_norm(x, axes, 1e-3) * scale + (offset if bias else 0)
    attrs = LayerNormAttrs(axis, 1e-3)
    found = run_op("layer_norm", x, scale, offset if bias else None, attrs=attrs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_layer_norm_without_scale_and_with_statistics() -> None:
    x = normal(2, 3, 4)
    y, mean, inverse = run_op("layer_norm", x, attrs=LayerNormAttrs(1, 1e-5, stats=True))
    np.testing.assert_allclose(y, layer_norm(x, (1, 2), 1e-5), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, x.mean((1, 2), keepdims=True), rtol=1e-5, atol=1e-6)
    deviation = np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(inverse, 1 / deviation, rtol=1e-5)


def test_scales_broadcast() -> None:
    x, scale, bias = normal(2, 3, 4, 5), normal(3, 1, 1), normal(4, 1)
    found = run_op("layer_norm", x, scale, bias, attrs=LayerNormAttrs(2))
    expected = layer_norm(x, (2, 3), 1e-5) * scale + bias
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_variance_does_not_cancel() -> None:
    # The difference of the mean of squares and the square of the mean would be rounding noise.
    x = (np.arange(8, dtype=np.float32) + 1e4)[None]
    found = run_op("layer_norm", x, attrs=LayerNormAttrs(-1))
    np.testing.assert_allclose(found, layer_norm(x, (1,), 1e-5), rtol=1e-3)


def test_narrow_floats_are_computed_wide() -> None:
    x = (np.arange(600) * 100).astype(np.float16)[None]  # squares overflow f16
    found = run_op("layer_norm", x, attrs=LayerNormAttrs(-1))
    np.testing.assert_allclose(found, layer_norm(x, (1,), 1e-5), rtol=2e-3, atol=1e-3)
    rms = run_op("rms_norm", x, attrs=RmsNormAttrs(-1))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(rms, wide / np.sqrt((wide**2).mean()), rtol=2e-3, atol=1e-3)
    stats = get_op("layer_norm").infer(LayerNormAttrs(-1, stats=True), [tensor(F16, 2, 3)])
    assert stats[1] == stats[2] == tensor(F32, 2, 1)


@for_each("axis", [1, -1])
def test_rms_norm(axis: int) -> None:
    x = normal(3, 4, 5)
    scale = normal(*x.shape[axis:])
    axes = tuple(range(axis % 3, 3))
    expected = x / np.sqrt((x**2).mean(axes, keepdims=True) + 1e-5) * scale
    found = run_op("rms_norm", x, scale, attrs=RmsNormAttrs(axis))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_symbolic_sizes() -> None:
    x, scale = normal(3, 4, 5), normal(5)
    dims = [("A", "B", "C"), ("C",)]
    for op, attrs in (("layer_norm", LayerNormAttrs(-1)), ("rms_norm", RmsNormAttrs(-1))):
        found = run_op(op, x, scale, attrs=attrs, dims=dims)
        np.testing.assert_array_equal(found, run_op(op, x, scale, attrs=attrs))


@for_each("axes", [(0, 2, 3), (1,), (-1, 0)])
def test_mean_variance_norm(axes: tuple[int, ...]) -> None:
    x = normal(2, 3, 4, 5)
    expected = (x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1e-9)
    found = run_op("mean_variance_norm", x, attrs=MeanVarianceAttrs(axes))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@for_each("axis", [0, 1, -1])
@for_each("p", [1, 2, 3])
def test_lp_norm(axis: int, p: int) -> None:
    x = normal(3, 4, 5)
    x[:, 0, :] = 0
    x[0, :, :] = 0  # rows of zeros along every axis
    with np.errstate(invalid="ignore"):
        norm = np.linalg.norm(x, p, axis, keepdims=True)
        expected = np.where(norm == 0, 0, x / norm)
    found = run_op("lp_norm", x, attrs=LpNormAttrs(axis, p))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@for_each("size", [1, 2, 3, 5, 12, 13, 40])
def test_lrn(size: int) -> None:
    x = normal(2, 7, 3)
    attrs = LrnAttrs(size, 0.5, 0.6, 1.5)
    expected = np.empty_like(x)
    for c in range(7):
        around = x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1]
        squares = (around**2).sum(1)
        expected[:, c] = x[:, c] / (1.5 + 0.5 / size * squares) ** 0.6
    found = run_op("lrn", x, attrs=attrs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_empty_rows() -> None:
    for op, attrs in (("layer_norm", LayerNormAttrs(-1)), ("rms_norm", RmsNormAttrs(-1))):
        assert run_op(op, np.zeros((0, 4), np.float32), attrs=attrs).shape == (0, 4)
        assert run_op(op, np.zeros((3, 0), np.float32), attrs=attrs).shape == (3, 0)


def test_nan_and_infinity_spoil_their_row_only() -> None:
    x = np.array([[1, np.nan, 3], [np.inf, 1, 2], [1, 2, 3]], np.float32)
    found = run_op("layer_norm", x, attrs=LayerNormAttrs(-1))
    assert np.isnan(found[:2]).all()
    assert np.isfinite(found[2]).all()


@for_each(
    ("op", "attrs", "ins", "message"),
    [
        ("layer_norm", LayerNormAttrs(2), [tensor(F32, 3, 4)], "axis 2"),
        ("layer_norm", LayerNormAttrs(), [tensor(I32, 3, 4)], "must be floats"),
        ("layer_norm", LayerNormAttrs(), [tensor(F32, 3, 4), tensor(F32, 5)], "broadcast"),
        ("layer_norm", LayerNormAttrs(), [tensor(F32, 3, 1), tensor(F32, 5)], "broadcast"),
        ("rms_norm", RmsNormAttrs(-3), [tensor(F32, 3, 4)], "axis -3"),
        ("mean_variance_norm", MeanVarianceAttrs((0, 2)), [tensor(F32, 3, 4)], "axis 2"),
        ("lp_norm", LpNormAttrs(3), [tensor(F32, 3, 4)], "axis 3"),
        ("lrn", LrnAttrs(0), [tensor(F32, 3, 4)], "at least 1"),
    ],
)
def test_refusals(op: str, attrs: Attrs, ins: list[TensorType], message: str) -> None:
    with pytest.raises(TypeCheckError, match=message):
        get_op(op).infer(attrs, ins)
