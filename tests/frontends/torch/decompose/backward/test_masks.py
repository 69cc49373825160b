from __future__ import annotations

from torch import Tensor

from tests.frontends.torch.eager import check_gradients, random


def test_elements_spread_by_a_mask() -> None:
    def spread(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        return x.masked_scatter(mask, y)

    x = random(3, 5)
    check_gradients(spread, x, random(17, seed=1), x > 0)
    check_gradients(spread, x, random(4, 5, seed=1), x[1] > 0)
