from __future__ import annotations

import torch

from tests.for_each import for_each
from tests.frontends.torch.eager import check, integers, random

NAN, INF = float("nan"), float("inf")
ODD = torch.tensor([NAN, -NAN, INF, -INF, 0.0, -0.0, 1e-40, -1e-45, 3.4e38, 1.0, -2.5, 6e-5])
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@for_each("dtype", TYPES)
def test_signs(dtype: torch.dtype) -> None:
    check(lambda x: (x.signbit(), x.copysign(x.flip(0)), x.copysign(-1.0)), ODD.to(dtype))


def test_signs_of_integers() -> None:
    whole = integers(-3, 3, 9)
    check(lambda x: (x.signbit(), x.copysign(x.flip(0)), x.copysign(-2)), whole)
    check(lambda x: x.signbit(), whole > 0)


@for_each("dtype", TYPES)
def test_exponents(dtype: torch.dtype) -> None:
    # what the exponent of no number and of infinities is, C does not say: torch gives any
    numbers = ODD[4:]
    check(lambda x: tuple(torch.frexp(x)), torch.cat([numbers, random(20) * 100]).to(dtype))
    check(lambda x: torch.frexp(x)[0], ODD.to(dtype))


def test_powers_of_two() -> None:
    check(torch.ldexp, random(3, 4), integers(-9, 9, 3, 4))
    check(torch.ldexp, integers(-9, 9, 3, 1), integers(-3, 9, 4, dtype=torch.int32))


@for_each("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_neighbours(dtype: torch.dtype) -> None:
    x = ODD.to(dtype)
    check(lambda a, b: a.nextafter(b).view(a.dtype), x.unsqueeze(1), x, rtol=0, atol=0)
