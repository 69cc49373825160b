from __future__ import annotations

import pytest
import torch

from tests.frontends.torch.eager import check, random

X = random(2, 3, 4)


def test_views() -> None:
    check(lambda x: (x.view(6, 4), x.reshape(-1, 2), x.flatten(1), x.view(2, -1)), X)
    check(lambda x: x.unflatten(-1, (2, 2)), X)
    check(lambda x: x.transpose(0, 2).reshape(4, 6), X)


def test_axes_of_size_one() -> None:
    check(lambda x: (x.unsqueeze(0), x.unsqueeze(-1), x.unsqueeze(1)), X)
    check(lambda x: (x.squeeze(), x.squeeze(0), x.squeeze(1), x.squeeze((0, -1))), random(1, 3, 1))


def test_order_of_axes() -> None:
    check(lambda x: (x.permute(2, 0, 1), x.transpose(0, -1), x.mT, x.movedim(0, 1)), X)
    check(lambda x: x.t(), random(3, 2))
    check(lambda x: x.t(), random(3))


def test_repetition() -> None:
    check(lambda x: x.expand(5, -1, 3, 4), random(2, 1, 4))
    check(lambda x: (x.repeat(2, 1, 3, 1), x.tile(2)), X)
    check(lambda x: x.repeat_interleave(3, 1), X)
    check(lambda x: torch.broadcast_to(x, (2, 3, 4)), random(4))


def test_backwards_and_around() -> None:
    check(lambda x: (x.flip(0), x.flip(-1, 1), x.flip(()), x.roll(2, -1)), X)


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_triangles(k: int) -> None:
    check(lambda x: (x.tril(k), x.triu(k)), X)


def test_shuffles() -> None:
    image = random(2, 8, 3, 5)
    check(torch.nn.PixelShuffle(2), image)
    check(torch.nn.PixelUnshuffle(2), random(1, 2, 4, 6))
    check(torch.nn.ChannelShuffle(4), image)
