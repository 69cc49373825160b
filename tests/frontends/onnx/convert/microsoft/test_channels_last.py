"""Images with their channels last: against onnxruntime, or torch where that needs a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.for_each import for_each
from tests.frontends.onnx.convert.microsoft.microsoft_node import RNG, check_ms, normal, run_ms
from tilewright.core.errors import FrontendError


def _last(x: torch.Tensor) -> np.ndarray:
    return x.permute(0, 2, 3, 1).numpy()


@for_each("kind", ["u1", "i1"])
def test_maxima_of_bytes(kind: str) -> None:
    x = RNG.integers(0, 256, (2, 7, 6, 3)).astype("u1").view(kind)
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    check_ms("NhwcMaxPool", [x], **window)
    check_ms("NhwcMaxPool", [x], kernel_shape=[2, 3], ceil_mode=1, strides=[2, 2])


def test_convolutions() -> None:
    x, w, bias, rest = normal(2, 7, 6, 4), normal(6, 2, 3, 3), normal(6), normal(2, 4, 6, 6)
    planes = torch.from_numpy(x).permute(0, 3, 1, 2)
    weights, offset = torch.from_numpy(w), torch.from_numpy(bias)
    expected = functional.conv2d(planes, weights, offset, stride=(2, 1), padding=1, groups=2)
    options = {"pads": [1] * 4, "strides": [2, 1], "group": 2}
    (found,) = run_ms("NhwcConv", [x, w.transpose(0, 2, 3, 1), bias], **options)
    np.testing.assert_allclose(found, _last(expected), atol=1e-5)
    (found,) = run_ms("NhwcFusedConv", [x, w, bias, rest], activation="Relu", **options)
    np.testing.assert_allclose(found, np.maximum(_last(expected) + rest, 0), atol=1e-5)


@for_each("last", [0, 1])
@for_each("activation", [0, 1])
def test_groups_of_channels(last: int, activation: int) -> None:
    x, scale, offset, bias = normal(2, 6, 5, 4), normal(6), normal(6), normal(6)
    skip = normal(2, 6)
    given = x.transpose(0, 2, 3, 1) if last else x
    options = {"groups": 3, "channels_last": last, "activation": activation, "epsilon": 1e-3}

    def expected(planes: np.ndarray) -> np.ndarray:
        parameters = torch.from_numpy(scale), torch.from_numpy(offset)
        y = functional.group_norm(torch.from_numpy(planes), 3, *parameters, eps=1e-3)
        y = functional.silu(y) if activation else y
        return _last(y) if last else y.numpy()

    (found,) = run_ms("GroupNorm", [given, scale, offset], **options)
    np.testing.assert_allclose(found, expected(x), atol=1e-4)
    y, total = run_ms("SkipGroupNorm", [given, scale, offset, skip, bias], outputs=2, **options)
    summed = x + (skip + bias)[:, :, None, None]
    np.testing.assert_allclose(total, summed.transpose(0, 2, 3, 1) if last else summed, atol=1e-5)
    np.testing.assert_allclose(y, expected(summed), atol=1e-4)
    with pytest.raises(FrontendError, match="activation is 2"):
        run_ms("GroupNorm", [given, scale, offset], **options | {"activation": 2})
