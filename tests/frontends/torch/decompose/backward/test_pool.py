from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.frontends.torch.eager import check_gradients, random


@pytest.mark.parametrize(
    "window",
    [(3, 2, 1), ((3, 2), 2, (1, 0), 1, True), (2, 1, 0, 2), ((2, 3), (4, 1))],
)
def test_maxima_of_images(window: tuple[Any, ...]) -> None:
    check_gradients(lambda x: F.max_pool2d(x, *window), random(2, 3, 9, 11))
    check_gradients(lambda x: F.max_pool2d(x, *window), random(3, 9, 8))


def test_maxima_of_rows_and_volumes() -> None:
    check_gradients(lambda x: F.max_pool1d(x, 3, 2, 1), random(2, 3, 9))
    check_gradients(lambda x: F.max_pool3d(x, 3, 2, 1), random(2, 3, 9, 4, 5))


def test_equal_elements_give_it_to_the_first() -> None:
    check_gradients(lambda x: F.max_pool2d(x, 3, 2, 1), torch.ones(1, 2, 7, 6))


@pytest.mark.parametrize("size", [(3, 2), (4, 7), (1, 1)])
def test_adaptive_maxima(size: tuple[int, int]) -> None:
    check_gradients(lambda x: F.adaptive_max_pool2d(x, size), random(2, 3, 9, 8))
    check_gradients(lambda x: F.adaptive_max_pool3d(x, (2, *size)), random(2, 5, 9, 8))


def test_fractional_maxima() -> None:
    samples = torch.full((2, 3, 2), 0.3).double()
    samples_3d = torch.full((2, 3, 3), 0.6).double()

    def image(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return F.fractional_max_pool2d(x, 2, (4, 5), _random_samples=at.detach())

    def volume(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return F.fractional_max_pool3d(x, 2, (3, 2, 4), _random_samples=at.detach())

    check_gradients(image, random(2, 3, 9, 11), samples)
    check_gradients(volume, random(2, 3, 5, 4, 7), samples_3d)


@pytest.mark.parametrize("ceil", [False, True])
def test_means_by_a_divisor(ceil: bool) -> None:
    check_gradients(
        lambda x: F.avg_pool2d(x, (3, 2), 2, 1, ceil, divisor_override=5), random(2, 3, 10, 7)
    )
    check_gradients(
        lambda x: F.avg_pool3d(x, 2, 3, 0, ceil, divisor_override=3), random(2, 3, 5, 6, 4)
    )
