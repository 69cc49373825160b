from __future__ import annotations

import pytest
from torch.nn.functional import grid_sample, interpolate

from tests.frontends.torch.eager import check, random


@pytest.mark.parametrize("size", [(8, 10), (7, 3), (4, 5)])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_images(mode: str, size: tuple[int, int]) -> None:
    check(lambda x: interpolate(x, size, mode=mode), random(2, 3, 4, 5), atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_corners(mode: str) -> None:
    x = random(2, 3, 4, 5)
    check(lambda x: interpolate(x, (7, 9), mode=mode, align_corners=True), x, atol=1e-5)


def test_scales() -> None:
    check(lambda x: interpolate(x, scale_factor=2.0), random(1, 2, 3, 4))
    check(lambda x: interpolate(x, scale_factor=(1.5, 2.5)), random(1, 2, 3, 5))
    check(
        lambda x: interpolate(x, scale_factor=1.5, mode="bilinear"), random(1, 2, 3, 5), atol=1e-5
    )


def test_other_ranks() -> None:
    check(lambda x: interpolate(x, 7), random(2, 3, 4))
    check(lambda x: interpolate(x, 7, mode="linear"), random(2, 3, 4), atol=1e-5)
    check(lambda x: interpolate(x, (4, 5, 6)), random(1, 2, 2, 3, 4))
    check(lambda x: interpolate(x, (4, 5, 6), mode="trilinear"), random(1, 2, 2, 3, 4), atol=1e-5)


@pytest.mark.parametrize("size", [(3, 2), (8, 10), (4, 3), (1, 7)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_smooth(mode: str, size: tuple[int, int]) -> None:
    x = random(2, 3, 7, 5)
    check(lambda x: interpolate(x, size, mode=mode, antialias=True), x, atol=1e-5)
    check(
        lambda x: interpolate(x, size, mode=mode, antialias=True, align_corners=True), x, atol=1e-5
    )


def test_smooth_by_scales() -> None:
    x = random(1, 2, 7, 9)
    check(
        lambda x: interpolate(x, scale_factor=(0.4, 0.7), mode="bilinear", antialias=True),
        x,
        atol=1e-5,
    )


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grids(mode: str, padding: str) -> None:
    x, grid = random(2, 3, 5, 4), random(2, 6, 7, 2, seed=1)
    for corners in (False, True):
        check(lambda x, g, k=corners: grid_sample(x, g, mode, padding, k), x, grid, atol=1e-5)


def test_grids_of_volumes() -> None:
    x, grid = random(2, 2, 3, 5, 4), random(2, 2, 3, 4, 3, seed=1)
    for mode in ("bilinear", "nearest"):
        check(lambda x, g, m=mode: grid_sample(x, g, m, align_corners=False), x, grid, atol=1e-5)
