from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from tests.for_each import for_each
from tests.frontends.torch.eager import check, ops, random

NAN, INF = float("nan"), float("inf")
ODD = torch.tensor([[[NAN, 2.0, NAN, -1.0, 1.0], [INF, -INF, 0.0, 3.0, 2.0], [-INF] * 5]])


@for_each("size", [1, 2, 3, 5, (4, 7), (None, 2)])
def test_adaptive_maxima(size: int | tuple[int, int]) -> None:
    check(nn.AdaptiveMaxPool2d(size, return_indices=True), random(2, 3, 8, 7))


def test_adaptive_maxima_of_other_ranks() -> None:
    check(nn.AdaptiveMaxPool1d(3, return_indices=True), random(2, 3, 8))
    check(nn.AdaptiveMaxPool3d((2, 3, 2), return_indices=True), random(2, 5, 7, 6))
    check(nn.AdaptiveMaxPool2d(3), torch.empty(0, 2, 4, 5))
    check(nn.AdaptiveMaxPool2d(2, return_indices=True), ODD)


def test_equal_windows_are_a_plain_pool() -> None:
    assert "max_pool" in ops(check(nn.AdaptiveMaxPool2d(2), random(2, 3, 8, 6)))
    check(nn.AdaptiveMaxPool3d(2, return_indices=True), random(2, 4, 2, 6))


@for_each("size", [(2, 3), (1, 4), (5, 1)])
def test_windows_at_random_distances(size: tuple[int, int]) -> None:
    samples = torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(4))
    check(
        lambda x, s: F.fractional_max_pool2d_with_indices(x, 2, size, _random_samples=s),
        random(2, 3, 9, 8),
        samples,
    )


def test_windows_at_random_distances_of_volumes() -> None:
    samples = torch.rand(1, 3, 3, generator=torch.Generator().manual_seed(4))
    check(
        lambda x, s: F.fractional_max_pool3d_with_indices(
            x, (2, 3, 2), (3, 2, 4), _random_samples=s
        ),
        random(3, 7, 8, 9),
        samples,
    )


def test_pools_undone() -> None:
    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        values, places = F.max_pool2d_with_indices(x, 2)
        return F.max_unpool2d(values, places, 2, output_size=x.shape[-2:])

    check(there_and_back, random(2, 3, 7, 8))
    check(there_and_back, random(3, 7, 8))

    def of_volumes(x: torch.Tensor) -> torch.Tensor:
        return F.max_unpool3d(*F.max_pool3d_with_indices(x, 2), 2)

    check(of_volumes, random(2, 3, 4, 6, 4))


@for_each("ceil", [False, True])
def test_means_by_a_divisor(ceil: bool) -> None:
    check(nn.AvgPool2d(3, 2, 1, ceil, divisor_override=5), random(2, 3, 9, 8))
    check(nn.AvgPool2d((2, 3), ceil_mode=ceil, divisor_override=3), random(3, 9, 8))
    check(nn.AvgPool3d(2, 3, 1, ceil, divisor_override=7), random(1, 2, 4, 5, 6))
