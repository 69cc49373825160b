from __future__ import annotations

import torch
from torch.nn import functional as F

from tests.for_each import for_each
from tests.frontends.torch.eager import check, random

ORDERS = (0.0, 0.5, 1.0, 2.0, 3.0, float("inf"))


@for_each("p", ORDERS)
def test_rows_of_two(p: float) -> None:
    x, y = random(3, 5, 4), random(2, 1, 7, 4, seed=1)
    check(lambda x, y: torch.cdist(x, y, p), x, y, atol=1e-5)
    check(lambda x, y: torch.cdist(x, y, p), random(5, 0), random(2, 0))
    check(lambda x, y: torch.cdist(x, y, p), random(30, 2), random(40, 2, seed=1), atol=1e-2)


@for_each("p", ORDERS)
def test_rows_of_one(p: float) -> None:
    check(lambda x: F.pdist(x, p), random(6, 3), atol=1e-5)
    check(lambda x: F.pdist(x, p), random(1, 3))
