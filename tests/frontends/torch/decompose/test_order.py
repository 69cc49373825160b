from __future__ import annotations

import torch

from tests.for_each import for_each
from tests.frontends.torch.eager import check, integers, random

X = random(3, 7, 4)
NAN, INF = float("nan"), float("inf")
ODD = torch.tensor([[NAN, 2.0, NAN, -1.0], [INF, -INF, 0.0, 3.0], [NAN] * 4])
ROW = torch.tensor([2, 2, -1, -1, -1, 7, 7, 7, 2, 2])


@for_each("dim", [0, 1, -1])
def test_the_middle_one(dim: int) -> None:
    check(lambda x: (*x.median(dim), *x.nanmedian(dim, keepdim=True)), X)
    check(lambda x: x.median(dim, keepdim=True), integers(0, 99, 5, 3, 2, dtype=torch.int32))


def test_the_middle_one_of_all() -> None:
    check(lambda x: (x.median(), x.nanmedian()), X)
    check(lambda x: (x.median(), *x.median(0)), torch.tensor(2.5))
    check(lambda x: (x.median(), x.nanmedian()), torch.empty(0, 3))
    check(lambda x: (x.median(), x.nanmedian()), X.to(torch.bfloat16))


def test_nan_is_no_number_in_the_middle() -> None:
    check(lambda x: (*x.median(1), x.nanmedian(1)[0], x.median(), x.nanmedian()), ODD)


@for_each("k", [1, 4, 7])
def test_the_k_th(k: int) -> None:
    check(lambda x: (*x.kthvalue(k, 1), *x.kthvalue(k, 1, keepdim=True)), X)
    check(lambda x: x.kthvalue(2, 1)[0], ODD)
    check(lambda x: x.kthvalue(1), torch.tensor(4))


def test_the_most_frequent() -> None:
    check(lambda x: x.mode(), ROW)
    check(lambda x: (x.mode(0)[0], x.mode(-1, keepdim=True)[0]), integers(0, 3, 6, 5))
    check(lambda x: (*x.mode(1), *x.mode(2)), X)
    check(lambda x: x.mode(), torch.tensor(True))
