from __future__ import annotations

import torch

from tests.for_each import for_each
from tests.frontends.torch.eager import check, random


@for_each(("axis", "size", "step"), [(0, 2, 1), (1, 3, 2), (-1, 7, 3), (2, 1, 5), (1, 5, 1)])
def test_unfold(axis: int, size: int, step: int) -> None:
    check(lambda x: x.unfold(axis, size, step), random(4, 5, 9))


def test_unfold_a_number() -> None:
    check(lambda x: x.unfold(0, 1, 1), torch.tensor(3.0))
