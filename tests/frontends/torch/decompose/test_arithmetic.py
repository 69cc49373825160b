from __future__ import annotations

import torch
from torch.nn import functional as F

from tests.for_each import for_each
from tests.frontends.torch.eager import check, integers, random

NAN, INF = float("nan"), float("inf")
ODD = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1e-40, 3e38, -1e30, 1.0, -2.5])


def test_the_other_of_a_number_and_none() -> None:
    check(lambda a, b: (a.fmax(b), a.fmin(b)), ODD.unsqueeze(1), ODD)
    check(lambda a, b: (a.fmax(b), a.fmin(b)), integers(-9, 9, 5), random(5))
    check(lambda a, b: (a.fmax(b), a.fmin(b)), integers(-9, 9, 5), integers(-9, 9, 3, 1))


@for_each("dtype", [torch.float32, torch.float64, torch.float16])
def test_lengths(dtype: torch.dtype) -> None:
    check(torch.hypot, ODD.to(dtype).unsqueeze(1), ODD.to(dtype), rtol=1e-3)
    check(torch.hypot, random(7).to(dtype), random(7, seed=1).to(dtype), rtol=1e-3)


def test_angles() -> None:
    check(torch.angle, ODD)
    check(torch.angle, integers(-3, 3, 9))


def test_sums_of_products() -> None:
    a, b = random(3, 4, 5), random(3, 5, 2)
    check(lambda x, y, z: torch.addbmm(x, y, z, beta=0.5, alpha=2), random(4, 2), a, b)
    check(torch.addbmm, random(2), a, b)
    check(F.bilinear, random(4, 3), random(4, 5), random(2, 3, 5), random(2))
    check(lambda x, y, w: F.bilinear(x, y, w), random(2, 4, 3), random(2, 4, 5), random(1, 3, 5))


@for_each("dtype", [torch.int32, torch.int64, torch.uint8])
def test_bits_moved(dtype: torch.dtype) -> None:
    x = integers(-90, 90, 12, dtype=dtype)
    count = torch.tensor([0, 1, 7, 8, 31, 32, 33, 63, 64, 65, -1, -40]).to(dtype)
    check(lambda a, b: (a << b, a >> b, a << 3, a >> 2), x, count)
