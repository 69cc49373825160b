from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.reduction.channel_norm import EpsilonAttrs, GroupNormAttrs
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def channelwise(v: np.ndarray, rank: int) -> np.ndarray:
    return v.reshape(-1, *(1,) * (rank - 2))


def normalized(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


@for_each("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5), (0, 3, 2, 2)])
def test_batch_norm(shape: tuple[int, ...]) -> None:
    x, scale, bias, mean = normal(*shape), normal(3), normal(3), normal(3)
    variance = np.abs(normal(3)) + 0.1
    s, b, m, v = (channelwise(p, len(shape)) for p in (scale, bias, mean, variance))
    expected = (x - m) / np.sqrt(v + 1e-2) * s + b
    found = run_op("batch_norm", x, scale, bias, mean, variance, attrs=EpsilonAttrs(1e-2))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_batch_norm_of_halves_is_rounded_once_for_each_channel() -> None:
    x, scale, bias, mean = (normal(*s).astype(np.float16) for s in ((2, 3, 9), *[(3,)] * 3))
    variance = np.array([3e-6, 2e-5, 1e-4], np.float16)  # of few digits in f16, less a tenth of it
    s, b, m, v = (channelwise(p.astype(np.float64), 3) for p in (scale, bias, mean, variance))
    expected = (x - m) / np.sqrt(v + 1e-6) * s + b
    found = run_op("batch_norm", x, scale, bias, mean, variance, attrs=EpsilonAttrs(1e-6))
    error = np.abs(found - expected).max((0, 2)) / np.abs(expected).max((0, 2))
    assert found.dtype == np.float16
    assert error.max() < 2e-3


@for_each("shape", [(2, 3, 5), (2, 3, 4, 5)])
def test_instance_norm(shape: tuple[int, ...]) -> None:
    x, scale, bias = normal(*shape), normal(3), normal(3)
    axes = tuple(range(2, len(shape)))
    expected = normalized(x, axes, 1e-5) * channelwise(scale, len(shape))
    found = run_op("instance_norm", x, scale, bias, attrs=EpsilonAttrs())
    expected += channelwise(bias, len(shape))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@for_each("groups", [1, 2, 3, 6])
@for_each("dims", [None, [("N", 6, "H", 5)]])
def test_group_norm(groups: int, dims: list | None) -> None:
    x, scale, bias = normal(2, 6, 4, 5), normal(6), normal(6)
    rows = normalized(x.reshape(2, groups, -1), (2,), 1e-5).reshape(x.shape)
    expected = rows * channelwise(scale, 4) + channelwise(bias, 4)
    found = run_op("group_norm", x, scale, bias, attrs=GroupNormAttrs(groups), dims=dims)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@for_each(
    ("op", "attrs", "ins", "message"),
    [
        ("batch_norm", EpsilonAttrs(), [tensor(F32, 3)] * 5, "rank 2"),
        ("batch_norm", EpsilonAttrs(), [tensor(F32, 2, 3), *[tensor(F32, 4)] * 4], "each channel"),
        ("instance_norm", EpsilonAttrs(), [tensor(F32, 2, 3), *[tensor(F32, 3)] * 2], "rank 3"),
        ("group_norm", GroupNormAttrs(4), [tensor(F32, 2, 6), *[tensor(F32, 6)] * 2], "4 groups"),
    ],
)
def test_refusals(op: str, attrs: Attrs, ins: list[TensorType], message: str) -> None:
    with pytest.raises(TypeCheckError, match=message):
        get_op(op).infer(attrs, ins)
