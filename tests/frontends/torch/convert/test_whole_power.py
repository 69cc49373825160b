"""Powers of integers, beside torch's."""

from __future__ import annotations

import pytest
import torch

from tests.for_each import for_each
from tests.frontends.torch.eager import check, imported, ops

BASES = [0, 1, -1, 2, -2, 3, -3, 7, 127, -128]
EXPONENTS = [0, 1, 2, 3, 5, 8, 9, 63, 64, 127, -1, -2, -3, -128]


def _table(bases: torch.dtype, exponents: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(BASES).to(bases)[:, None], torch.tensor(EXPONENTS).to(exponents)


@for_each("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
def test_they_wrap_around(dtype: torch.dtype) -> None:
    check(torch.pow, *_table(dtype, dtype))


def test_of_other_types() -> None:
    check(torch.pow, *_table(torch.int64, torch.int8))
    check(torch.pow, *_table(torch.int8, torch.int32))
    check(torch.pow, torch.tensor(BASES), torch.tensor([True, False, True, True, False] * 2))
    large = torch.tensor([2**63 - 1, 2**63 - 2, -(2**63), 2**62 + 1])
    check(torch.pow, large[:, None], torch.tensor([2**62 + 1, -5, 3, 2**40]))
    check(torch.pow, torch.zeros(0, 3, dtype=torch.int64), torch.ones(3, dtype=torch.int64))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 10, 63, 64, 1000])
def test_of_a_number(exponent: int) -> None:
    check(lambda x: x**exponent, torch.tensor(BASES))
    check(lambda x: 3**x, torch.tensor(EXPONENTS))


def test_a_cube_is_two_products() -> None:
    assert ops(imported(lambda x: x**3, torch.tensor(BASES))) == ["mul", "mul"]
