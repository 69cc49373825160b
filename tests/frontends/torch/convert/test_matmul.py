from __future__ import annotations

import pytest
import torch

from tests.frontends.torch.eager import check, random


def test_products() -> None:
    check(torch.mm, random(3, 4), random(4, 5))
    check(torch.bmm, random(2, 3, 4), random(2, 4, 5))
    check(torch.matmul, random(2, 3, 4), random(4, 5))
    check(torch.matmul, random(2, 1, 3, 4), random(3, 4, 5))
    check(torch.matmul, random(4), random(4, 5))
    check(torch.mv, random(3, 4), random(4))
    check(torch.dot, random(4), random(4))
    check(torch.outer, random(3), random(4))


def test_sums_of_products() -> None:
    given = random(3, 5), random(3, 4), random(4, 5)
    check(torch.addmm, *given)
    check(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), *given)
    check(lambda c, a, b: torch.addmm(c, a, b, beta=0), *given)
    check(torch.baddbmm, random(2, 3, 5), random(2, 3, 4), random(2, 4, 5))


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
def test_linear(shape: tuple[int, ...]) -> None:
    check(torch.nn.Linear(4, 5), random(*shape))
    check(torch.nn.Linear(4, 5, bias=False), random(*shape))


def test_einsum() -> None:
    check(lambda a, b: torch.einsum("bij,bkj->bik", a, b), random(2, 3, 4), random(2, 5, 4))
