"""Operators that join several, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import gelu

from tests.for_each import for_each
from tests.frontends.onnx.convert.microsoft.microsoft_node import RNG, check_ms, normal, run_ms
from tests.frontends.onnx.convert.run_node import check_node
from tilewright.core.errors import UnsupportedError

X = normal(2, 3, 8)


def test_activations() -> None:
    check_ms("Gelu", [X])
    check_ms("QuickGelu", [X])
    check_ms("BiasGelu", [X, normal(8)])
    check_ms("FastGelu", [X])
    check_ms("FastGelu", [X, normal(8)])


def test_products() -> None:
    check_ms("FusedMatMul", [normal(2, 4, 3), normal(2, 5, 4)], alpha=0.5, transA=1, transB=1)
    check_ms("FusedMatMul", [normal(3, 4), normal(4)])
    check_ms("FusedGemm", [normal(3, 4), normal(5, 4), normal(5)], activation="Relu", transB=1)
    check_ms("TransposeMatMul", [normal(2, 4, 3), normal(4, 5)], alpha=2.0, transA=1)


@for_each("transposed", [0, 1])
def test_products_of_operands_with_their_batch_inside(transposed: int) -> None:
    x = normal(3, 2, 5, 4) if not transposed else normal(4, 2, 5, 3)
    w = normal(4, 2, 5, 6)
    options = {"transBatchA": 1, "transBatchB": 1, "transA": transposed}
    check_ms("FusedMatMul", [x, w], **options)


def test_products_that_onnxruntime_has_on_gpus_only() -> None:
    x, w, bias = normal(2, 3, 4), normal(4, 5), normal(5)
    total = torch.from_numpy(x @ w)
    (found,) = run_ms("FusedMatMulActivation", [x, w], activation="Relu", alpha=0.5)
    np.testing.assert_allclose(found, torch.relu(total * 0.5), atol=1e-5)
    (found,) = run_ms("GemmFastGelu", [x, w, bias])
    expected = gelu(total + torch.from_numpy(bias), approximate="tanh")
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_sums_that_onnxruntime_has_on_gpus_only() -> None:
    bias, skip = normal(8), normal(2, 3, 8)
    (found,) = run_ms("BiasAdd", [X, bias, skip])
    np.testing.assert_allclose(found, X + bias + skip, atol=1e-5)
    (found,) = run_ms("BiasSplitGelu", [X, bias])
    left, right = torch.from_numpy(X + bias).chunk(2, dim=-1)
    np.testing.assert_allclose(found, left * gelu(right), atol=1e-5)
    scores, mask = normal(2, 3, 4, 5), normal(2, 1, 1, 5)
    for axis, shape in ((3, (2, 3, 4, 5)), (2, (2, 3, 20))):
        (found,) = run_ms("BiasSoftmax", [scores, mask], axis=axis, is_inner_broadcast=1)
        rows = torch.from_numpy((scores + mask).reshape(shape))
        expected = torch.softmax(rows, -1).reshape(scores.shape)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@for_each(
    ("name", "numbers"),
    [("Relu", []), ("Sigmoid", []), ("LeakyRelu", [0.25]), ("Clip", [-0.5, 0.5])],
)
def test_convolutions(name: str, numbers: list[float]) -> None:
    options: dict[str, Any] = {"activation": name}
    if numbers:
        options["activation_params"] = numbers
    check_ms("FusedConv", [normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4)], **options)


def test_a_tensor_added_to_a_convolution() -> None:
    inputs = [normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4), normal(1, 4, 4, 4)]
    check_ms("FusedConv", inputs, activation="Relu")
    with pytest.raises(UnsupportedError, match="activation Swish"):
        run_ms("FusedConv", inputs, activation="Swish")


def test_normalisation() -> None:
    skip, scale, shift, bias = normal(2, 3, 8), normal(8), normal(8), normal(8)
    check_ms("SkipLayerNormalization", [X, skip, scale, shift, bias], epsilon=1e-5)
    check_ms("SkipLayerNormalization", [X, skip, scale, shift], epsilon=1e-5)
    check_ms("SkipLayerNormalization", [X, skip, scale], epsilon=1e-5)
    check_ms("SkipSimplifiedLayerNormalization", [X, skip, scale], epsilon=1e-5)
    simple = {"opset": 1, "axis": -1, "epsilon": 1e-5}
    check_node("SimplifiedLayerNormalization", [X, scale], **simple)
    found = run_ms("SkipLayerNormalization", [X, skip, scale, shift, bias], outputs=4)
    total = X + skip + bias
    np.testing.assert_allclose(found[1], total.mean(-1, keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found[2], 1 / total.std(-1, keepdims=True), rtol=1e-4)
    np.testing.assert_allclose(found[3], total, rtol=1e-6)


def test_embeddings() -> None:
    words, segments = (RNG.integers(0, k, (2, 3)).astype("i4") for k in (10, 2))
    mask = np.array([[1, 1, 0], [1, 1, 1]], "i4")
    scale = [normal(8), normal(8)]
    whole = [words, segments, normal(10, 8), normal(5, 8), normal(2, 8), *scale, mask]
    check_ms("EmbedLayerNormalization", whole, outputs=2, epsilon=1e-5)
    short = [words, None, normal(10, 8), normal(5, 8), None, *scale]
    check_ms("EmbedLayerNormalization", short, outputs=2, epsilon=1e-5)


def test_sampling() -> None:
    inputs = [normal(1, 2, 4, 4), RNG.uniform(-1, 1, (1, 3, 3, 2)).astype("f4")]
    check_ms("GridSample", inputs, mode="bilinear", padding_mode="border")
