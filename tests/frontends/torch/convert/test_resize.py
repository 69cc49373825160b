from __future__ import annotations

import pytest
from torch.nn.functional import interpolate

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
