from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.frontends.torch.eager import check_gradients, random
from tilewright.frontends.torch.decompose.backward.embedding import bag_backward

ROWS = torch.tensor([1, 4, 4, 0, 8, 2, 2, 2, 7, 3, 5])
BAGS = torch.tensor([0, 3, 3, 7])


def bags(**options: Any) -> Callable[..., Tensor]:
    return lambda w, rows, starts: F.embedding_bag(rows, w, starts, **options)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_bags(mode: str, padding: int | None) -> None:
    check_gradients(bags(mode=mode, padding_idx=padding), random(9, 3), ROWS, BAGS)


def test_bags_of_one_length() -> None:
    check_gradients(lambda w, rows: F.embedding_bag(rows, w), random(9, 3), ROWS[:10].reshape(5, 2))


def test_what_stays_with_torch() -> None:
    given = (random(4, 3), ROWS, BAGS, ROWS, BAGS, BAGS, 9)
    for by_frequency, sparse in ((True, False), (False, True)):
        assert bag_backward(*given, by_frequency, 0, sparse, None) is NotImplemented


@pytest.mark.parametrize("padding", [None, 2])
def test_weights_of_the_rows_of_bags(padding: int | None) -> None:
    def joined(w: Tensor, each: Tensor, rows: Tensor, starts: Tensor) -> Tensor:
        return F.embedding_bag(
            rows, w, starts, mode="sum", per_sample_weights=each, padding_idx=padding
        )

    check_gradients(joined, random(9, 3), random(11, seed=1), ROWS, BAGS)


@pytest.mark.parametrize("padding", [-1, 4])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_rows(padding: int, by_frequency: bool) -> None:
    check_gradients(
        lambda w, rows: F.embedding(rows, w, padding, scale_grad_by_freq=by_frequency),
        random(9, 3),
        ROWS,
    )
