from __future__ import annotations

import pytest
import torch

from tests.frontends.torch.eager import check, integers, random

X = random(3, 4, 5)
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin"])
def test_reductions(name: str) -> None:
    reduce = getattr(torch, name)
    check(lambda x: (reduce(x, 1), reduce(x, (0, 2), keepdim=True), reduce(x, -1)), X)


def test_of_everything() -> None:
    check(lambda x: (x.sum(), x.mean(), x.prod(), x.max(), x.min(), x.var(), x.std()), X)
    check(lambda x: (x.sum(), x.prod(1), x.max()), integers(-5, 5, 3, 4, dtype=torch.int32))
    check(lambda x: x.sum(), torch.tensor(3.0))
    check(lambda x: x.sum(), random(0, 3))


def test_deviations() -> None:
    check(lambda x: (x.var(1), x.std((0, 2), correction=0), x.var(-1, keepdim=True)), X)
    check(lambda x: torch.var_mean(x, 1), X)
    check(lambda x: (x.norm(), torch.linalg.vector_norm(x, 1, dim=1), x.logsumexp(1)), X)
    check(lambda x: tuple(x.norm(p, -1) for p in (3, 0, torch.inf, -torch.inf)), X)


def test_truth() -> None:
    mask = X > 1
    check(lambda p: (p.any(), p.all(), p.any(1), p.all(0, keepdim=True), p.sum()), mask)
    check(lambda x: (x.any(), x.all(1)), integers(0, 2, 3, 4))


def test_places() -> None:
    check(lambda x: (x.argmax(), x.argmin(1), x.argmax(-1, keepdim=True)), X)
    check(lambda x: x.max(1), X)
    check(lambda x: x.min(-1, keepdim=True).indices, X)
    check(lambda x: x.argmax(), torch.tensor(1.0))


def test_running() -> None:
    check(lambda x: (x.cumsum(1), x.cumprod(-1)), X)
    check(lambda x: x.cumsum(0), integers(0, 5, 6, dtype=torch.int32))
    check(lambda x: x.cumsum(0), torch.tensor(2.0))


def test_order() -> None:
    check(lambda x: x.topk(2, 1), X)
    check(lambda x: x.topk(3, -1, largest=False).values, X)
    check(lambda x: x.sort(1), X)
    check(lambda x: (x.sort(descending=True).values, x.argsort(0)), X)


def test_running_values() -> None:
    odd = torch.tensor([[1.0, NAN, 3.0, NAN], [-INF, -INF, 2.0, INF], [2.0, 2.0, 1.0, 2.0]])
    for x in (random(3, 5), odd, integers(-3, 4, 4, 6)):
        check(lambda x: (*x.cummax(1), *x.cummin(0)), x)
    check(lambda x: (x.logcumsumexp(1), x.logcumsumexp(0)), odd)
    check(lambda x: x.logcumsumexp(-1), random(3, 5).to(torch.bfloat16), rtol=1e-2)
    check(lambda x: (*x.cummax(0), *x.cummin(0), x.logcumsumexp(0)), torch.tensor(2.5))
    check(lambda x: x.cummax(0), torch.tensor([False, True, False]))


def test_order_of_truth_values_and_scalars() -> None:
    check(lambda x: x.sort(stable=True), torch.tensor([True, False, True]))
    check(lambda x: (*x.sort(), *x.topk(1), *x.max(0), *x.min(0)), torch.tensor(2.5))
