from __future__ import annotations

import pytest
import torch

from tests.frontends.torch.eager import check_gradients, random


@pytest.mark.parametrize("dim", [0, 2])
def test_weight_norm(dim: int) -> None:
    length = [1, 1, 1]
    length[dim] = (3, 4, 5)[dim]
    given = random(3, 4, 5), random(*length, seed=1)
    check_gradients(lambda v, g: torch._weight_norm(v, g, dim), *given)
