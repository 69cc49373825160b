from __future__ import annotations

import pytest
import torch

from tests.frontends.torch.eager import check, integers, random

A, B = integers(-2, 3, 12), integers(-2, 3, 3, 12)
P, Q = A > 0, B > 0


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparison(name: str) -> None:
    compare = getattr(torch, name)
    check(compare, A, B)
    check(compare, A.float(), B)
    check(lambda x: compare(x, 1), A.float())
    check(lambda x: compare(x, 0.5), A)
    check(compare, torch.tensor([torch.nan, 1.0]), torch.tensor([torch.nan, 1.0]))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logic(name: str) -> None:
    check(getattr(torch, name), P, Q)
    check(getattr(torch, name), A, B.float())


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name: str) -> None:
    check(getattr(torch, name), A, B)
    check(getattr(torch, name), P, Q)


def test_not() -> None:
    check(lambda p, a: (~p, ~a, torch.logical_not(a)), P, A)


def test_questions() -> None:
    x = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0])
    check(lambda x: (x.isnan(), x.isinf(), x.isfinite()), x)
    check(lambda x: (x.isnan(), x.isinf()), A)


def test_choice() -> None:
    check(torch.where, Q, random(3, 12), random(1, 12))
    check(lambda p, x: torch.where(p, x, 0.0), P, random(12))
    check(lambda p, x: torch.where(p, x, 2.5), P, A)
    check(lambda p, x: x.masked_fill(p, -torch.inf), P, random(3, 12))
