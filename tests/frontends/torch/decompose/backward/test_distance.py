from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.frontends.torch.eager import check_gradients, random

NORMS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")]


@pytest.mark.parametrize("p", NORMS)
def test_each_of_two_matrices(p: float) -> None:
    x, y = random(2, 3, 5), random(2, 4, 5, seed=1)
    y[0, 0] = x[0, 1]  # the same, which have no slope
    y[1, 1, 2] = x[1, 0, 2]
    check_gradients(lambda x, y: torch.cdist(x, y, p), x, y)


@pytest.mark.parametrize("p", NORMS)
def test_pairs_of_one_matrix(p: float) -> None:
    def distances(x: Tensor) -> Tensor:
        return F.pdist(x, p)

    check_gradients(distances, random(4, 5))
