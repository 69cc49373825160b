from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.frontends.torch.eager import check, check_gradients, random

CONVOLUTIONS: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "1d": (lambda x, w, b: F.conv1d(x, w, b, 2, 1), [(2, 4, 13), (6, 4, 3), (6,)]),
    "2d": (lambda x, w, b: F.conv2d(x, w, b, 2, 1), [(2, 4, 9, 8), (6, 4, 3, 3), (6,)]),
    "2d of stride 1": (lambda x, w: F.conv2d(x, w), [(2, 4, 5, 6), (3, 4, 3, 2)]),
    "1x1": (lambda x, w: F.conv2d(x, w, stride=2), [(2, 4, 5, 6), (3, 4, 1, 1)]),
    "3d": (lambda x, w: F.conv3d(x, w, None, 2, 1), [(2, 3, 5, 4, 6), (4, 3, 3, 3, 3)]),
    "groups": (
        lambda x, w, b: F.conv2d(x, w, b, 1, (2, 1), 2, groups=2),
        [(2, 4, 9, 8), (6, 2, 3, 3), (6,)],
    ),
    "depthwise": (
        lambda x, w: F.conv2d(x, w, None, (2, 3), 1, groups=4),
        [(2, 4, 9, 8), (8, 1, 3, 3)],
    ),
    "transposed": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 2, 2),
        [(2, 4, 5, 6), (4, 3, 3, 3), (6,)],
    ),
    "transposed 1d": (lambda x, w: F.conv_transpose1d(x, w, None, 3), [(2, 4, 5), (4, 3, 3)]),
}


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolution(kind: str) -> None:
    function, shapes = CONVOLUTIONS[kind]
    check_gradients(function, *(random(*s, seed=i) for i, s in enumerate(shapes)))


def test_data_that_are_their_own_weights() -> None:
    check_gradients(lambda x: F.conv1d(x, x, padding=1), random(3, 3, 5))


def test_gradients_that_nobody_asks_for() -> None:
    given = random(2, 4, 7, 6), random(6, 4, 3, 3), random(6)
    check_gradients(lambda x, w, b: F.conv2d(x, w.detach(), b), *given)
    check_gradients(lambda x, w, b: F.conv2d(x.detach(), w, b.detach()), *given)


@pytest.mark.parametrize("padding", [{}, {"padding": 1, "count_include_pad": False}])
@pytest.mark.parametrize("ceil", [False, True])
def test_average_pool(padding: dict[str, Any], ceil: bool) -> None:
    given = {**padding, "ceil_mode": ceil}
    check_gradients(lambda x: F.avg_pool1d(x, 3, 2, **given), random(2, 3, 10))
    check_gradients(lambda x: F.avg_pool2d(x, (3, 2), 2, **given), random(2, 3, 10, 7))
    check_gradients(lambda x: F.avg_pool3d(x, 2, **given), random(3, 5, 6, 4))


@pytest.mark.parametrize("size", [(4, 1), (1, 1), (3, 7), (9, 8)])
def test_adaptive_average_pool(size: tuple[int, int]) -> None:
    check_gradients(lambda x: F.adaptive_avg_pool2d(x, size), random(2, 3, 9, 8))
    check_gradients(lambda x: F.adaptive_avg_pool3d(x, (2, *size)), random(2, 5, 9, 8))


def norm_cases() -> dict[str, Callable[..., Tensor]]:
    return {
        "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        "instance": lambda x, w, b: F.instance_norm(x, None, None, w, b),
        "group": lambda x, w, b: F.group_norm(x, 2, w, b, 1e-3),
        "layer": lambda x, w, b: F.layer_norm(x.mT, (4,), w, b),
        "layer without bias": lambda x, w, b: F.layer_norm(x.mT, (4,), w) + b,
        "rms": lambda x, w, b: F.rms_norm(x.mT, (4,), w) + b,
    }


@pytest.mark.parametrize("kind", norm_cases())
def test_norm(kind: str) -> None:
    check_gradients(norm_cases()[kind], random(3, 4, 7), random(4, seed=1), random(4, seed=2))


@pytest.mark.parametrize("training", [False, True])
def test_running_statistics(training: bool) -> None:
    def normalized(x: Tensor, w: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, ...]:
        mean, variance = mean.detach().clone(), variance.detach().square() + 0.1
        y = F.batch_norm(x, mean, variance, w, None, training, 0.3)
        return y, y * mean[:, None], y + variance[:, None]

    given = random(3, 4, 7), random(4, seed=1), random(4, seed=2), random(4, seed=3)
    check_gradients(normalized, *given)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
def test_resizing(mode: str, corners: bool, antialias: bool) -> None:
    given = {"mode": mode, "align_corners": corners, "antialias": antialias}
    check_gradients(lambda x: F.interpolate(x, (7, 10), **given), random(2, 3, 4, 5))
    check_gradients(lambda x: F.interpolate(x, (3, 4), **given), random(2, 3, 8, 9))


def test_operators_that_resize() -> None:
    aten = torch.ops.aten
    dy = random(2, 3, 7, 10)
    size = [2, 3, 4, 5]

    def slopes(dy: Tensor) -> tuple[Tensor, ...]:
        given = [7, 10], size
        return (
            aten.upsample_nearest2d_backward(dy, *given),
            aten.upsample_bilinear2d_backward(dy, *given, False),
            aten.upsample_bicubic2d_backward(dy, *given, True),
        )

    check(slopes, dy)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_samples_of_a_grid(mode: str, padding: str) -> None:
    def sampled(x: Tensor, grid: Tensor) -> Tensor:
        return F.grid_sample(x, grid.tanh() * 1.4, mode, padding, align_corners=False)

    check_gradients(sampled, random(2, 3, 5, 6), random(2, 4, 7, 2, seed=1))
    if mode != "bicubic":
        check_gradients(sampled, random(2, 2, 3, 5, 4), random(2, 2, 3, 2, 3, seed=1))
