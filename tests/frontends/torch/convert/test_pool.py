from __future__ import annotations

import torch
from torch import nn

from tests.for_each import for_each
from tests.frontends.torch.eager import check, random

NAN, INF = float("nan"), float("inf")
ODD = torch.tensor([[[NAN, 2.0, NAN, -1.0], [INF, -INF, 0.0, 3.0], [-INF] * 4, [NAN] * 4]])


def test_max_pools() -> None:
    check(nn.MaxPool1d(3, 2, 1), random(2, 3, 9))
    check(nn.MaxPool2d(3, 2, 1, ceil_mode=True), random(2, 3, 9, 8))
    check(nn.MaxPool2d(2, dilation=2), random(3, 9, 8))
    check(nn.MaxPool3d(2), random(1, 2, 4, 5, 6))


def test_where_the_greatest_was() -> None:
    check(nn.MaxPool1d(3, 2, 1, return_indices=True), random(2, 3, 9))
    check(nn.MaxPool2d(3, 2, 1, ceil_mode=True, return_indices=True), random(2, 3, 9, 8))
    check(nn.MaxPool2d(2, dilation=2, return_indices=True), random(3, 9, 8))
    check(nn.MaxPool3d(2, return_indices=True), random(2, 2, 4, 5, 6))
    check(nn.MaxPool2d(3, 2, 1, return_indices=True), ODD)


def test_average_pools() -> None:
    check(nn.AvgPool1d(3, 2, 1), random(2, 3, 9))
    check(nn.AvgPool2d(3, 2, 1, count_include_pad=False), random(2, 3, 9, 8))
    check(nn.AvgPool2d((2, 3), ceil_mode=True), random(3, 9, 8))
    check(nn.AvgPool3d(2), random(1, 2, 4, 5, 6))


@for_each("size", [1, 2, 3, 5, (4, 7)])
def test_adaptive_average(size: int | tuple[int, int]) -> None:
    check(nn.AdaptiveAvgPool2d(size), random(2, 3, 8, 7))


def test_adaptive_of_other_ranks() -> None:
    check(nn.AdaptiveAvgPool1d(3), random(2, 3, 8))
    check(nn.LPPool2d(2, 2), random(1, 2, 4, 4).abs())


def test_an_axis_as_it_is() -> None:
    check(nn.AdaptiveAvgPool2d((None, 1)), torch.ones(1, 2, 3, 4))
