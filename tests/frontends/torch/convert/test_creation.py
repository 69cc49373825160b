from __future__ import annotations

import pytest
import torch

from tests.for_each import for_each
from tests.frontends.torch.eager import check, imported, random
from tilewright.core.errors import UnsupportedError

X = random(2, 3)


def test_filled() -> None:
    check(
        lambda x: (torch.zeros(2, 3), torch.ones_like(x), torch.full((2,), 7), x.new_full((2,), 1)),
        X,
    )
    check(lambda x: (torch.full_like(x, 2.5), torch.scalar_tensor(3.0) + x), X)
    check(lambda x: torch.empty(3).shape[0] + x, X)


def test_ranges() -> None:
    check(lambda x: (torch.arange(5), torch.arange(2, 11, 3), torch.arange(5, 0, -2)), X)
    check(lambda x: (torch.arange(0, 1, 0.3), torch.arange(5.0), torch.arange(3, 3)), X)
    check(lambda x: (torch.linspace(0, 1, 5), torch.eye(3), torch.eye(2, 4)), X)


def test_triangles() -> None:
    check(lambda x: (torch.tril_indices(3, 4, 1), torch.triu_indices(5, 3, -2)), X)
    check(lambda x: (torch.tril_indices(3, 4, -3), torch.triu_indices(2, 2, dtype=torch.int32)), X)


def test_anything_by_strides() -> None:
    found = imported(lambda x: (torch.empty_strided((2, 3), (1, 2)), x.new_empty(4)), X)
    assert [len(found.types[name].shape) for name in found.outputs] == [2, 1]


@for_each("dtype", [torch.int64, torch.int32, torch.uint8, torch.float64], ids=str)
def test_ranges_between_fractions(dtype: torch.dtype) -> None:
    ends = ((0.0, 8.000001, 4.0), (1.9, 7.1, 2.5), (0.5, 3.5, 1.0))
    check(lambda x: [torch.arange(*one, dtype=dtype) for one in ends], X, rtol=1e-15)
    if dtype != torch.uint8:
        check(lambda x: torch.arange(0.0, -8.000001, -4.0, dtype=dtype), X)


def test_a_range_beyond_all_memory() -> None:
    with pytest.raises(UnsupportedError, match="2199023255552 numbers"):
        imported(lambda x: torch.arange(0, 2.0**40, 0.5), X)


def test_tensors_in_the_source() -> None:
    check(lambda x: x + torch.tensor([1.0, 2.0, 3.0]), X)
