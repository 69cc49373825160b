"""Quotients beside torch's: of numbers whose quotient is all but whole, and at the edges."""

from __future__ import annotations

import pytest
import torch

from tests.for_each import for_each
from tests.frontends.torch.eager import check, random

INF, NAN = torch.inf, torch.nan
EDGES = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.1, -0.3, 2.5, 7.0, 1e-30, -3e30, INF, -INF, NAN])
MODES = ["trunc", "floor"]


@for_each("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_edges(mode: str, dtype: torch.dtype) -> None:
    a = EDGES.to(dtype)
    check(lambda a, b: torch.div(a, b, rounding_mode=mode), a[:, None], a, rtol=0, atol=0)


@for_each("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_quotients_that_are_all_but_whole(mode: str, dtype: torch.dtype) -> None:
    steps = torch.tensor([0.1, 0.2, 0.3, 0.7, 1.1, -0.1])
    whole = torch.arange(-50, 50)[:, None] * steps
    check(
        lambda a, b: torch.div(a, b, rounding_mode=mode), whole.to(dtype), steps.to(dtype), atol=0
    )
    check(torch.floor_divide, (random(200, 1) * 9).to(dtype), random(9).to(dtype), atol=0)


def test_zeros_keep_their_sign() -> None:
    found = check(torch.floor_divide, EDGES[:, None], EDGES)
    assert found.outputs
    compiled = torch.compile(torch.floor_divide, backend="tilewright")
    ours, right = compiled(EDGES[:, None], EDGES), torch.floor_divide(EDGES[:, None], EDGES)
    known = ~right.isnan()
    assert torch.equal(ours.signbit()[known], right.signbit()[known])
