from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.frontends.torch.eager import check, random
from tilewright.frontends.torch.decompose.foreach import DECOMPOSITIONS, fma

CALLS: dict[str, Callable[..., Any]] = {
    "add.List": lambda x, y: torch._foreach_add(x, y, alpha=-2),
    "add.Scalar": lambda x, y: torch._foreach_add(x, 3),
    "add.ScalarList": lambda x, y: torch._foreach_add(x, [3, 0.5]),
    "add.Tensor": lambda x, y: torch._foreach_add(x, y[0][0, 0], alpha=3),
    "sub": lambda x, y: torch._foreach_sub(x, y, alpha=2),
    "mul": lambda x, y: torch._foreach_mul(x, y),
    "div.ScalarList": lambda x, y: torch._foreach_div(x, [3, 0.5]),
    "addcdiv.Scalar": lambda x, y: torch._foreach_addcdiv(x, y, x, 0.5),
    "addcdiv.ScalarList": lambda x, y: torch._foreach_addcdiv(x, y, x, [2.0, 3.0]),
    "addcmul.Scalar": lambda x, y: torch._foreach_addcmul(x, y, x, 0.5),
    "lerp.Scalar": lambda x, y: torch._foreach_lerp(x, y, 0.3),
    "lerp.List": lambda x, y: torch._foreach_lerp(x, y, y),
    "maximum": lambda x, y: torch._foreach_maximum(x, y),
    "maximum.Scalar": lambda x, y: torch._foreach_maximum(x, 0.1),
    "minimum.ScalarList": lambda x, y: torch._foreach_minimum(x, [0.1, -0.2]),
    "minimum": lambda x, y: torch._foreach_minimum(x, y),
    "clamp": lambda x, y: torch._foreach_clamp_max(x, y),
    "pow.Scalar": lambda x, y: torch._foreach_pow(x, 2),
    "pow.ScalarAndTensor": lambda x, y: torch._foreach_pow(2.0, x),
    "sqrt": lambda x, y: torch._foreach_sqrt(torch._foreach_abs(x)),
    "norm": lambda x, y: torch._foreach_norm(x),
    "norm of order 1": lambda x, y: torch._foreach_norm(x, 1),
    "greatest": lambda x, y: torch._foreach_norm(x, float("inf")),
    "clone": lambda x, y: torch._foreach_clone(x),
}


@pytest.mark.parametrize("kind", CALLS)
def test_each_tensor_of_a_list(kind: str) -> None:
    def both(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Any:
        return CALLS[kind]([a, b], [c, d])

    given = random(3, 4), random(5, seed=1), random(3, 4, seed=2), random(5, seed=3)
    check(both, *given)


def test_what_is_written_to_a_list() -> None:
    def written(a: Tensor, b: Tensor) -> Any:
        x = [a.clone(), b.clone()]
        torch._foreach_mul_(x, 0.5)
        torch._foreach_lerp_(x, [b, a], 0.25)
        torch._foreach_copy_(x, [b * x[0], x[1]])
        y = [t.clone() for t in x]
        torch._foreach_zero_(y)
        return (*x, *y)

    check(written, random(3, 4), random(3, 4, seed=1))


def test_all_operators_on_lists_have_one_on_a_tensor() -> None:
    assert len(DECOMPOSITIONS) > 70
    assert "aten._foreach_add.List" in DECOMPOSITIONS


def test_a_product_and_a_sum() -> None:
    check(fma, random(3), random(3, seed=1), random(3, seed=2))
