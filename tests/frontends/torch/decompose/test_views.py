from __future__ import annotations

import pytest
import torch

from tests.frontends.torch.eager import check, imported, integers, random
from tilewright.core.errors import UnsupportedError

X = random(4, 6, 5)


def test_strides_that_nest_are_slices() -> None:
    graph = check(lambda x: x.as_strided((3, 2, 5), (30, 15, 2), 3), X)
    assert "gather" not in [n.op for n in graph.nodes]
    check(lambda x: (x.as_strided((5, 4), (1, 5)), x.as_strided((), (), 7)), X)
    check(lambda x: x.as_strided((2, 3, 4), (4, 0, 1), 1), X)
    check(lambda x: (x.as_strided((0, 3), (3, 1)), x.as_strided((1, 1), (9, 7), 2)), X)


def test_strides_that_overlap_are_indices() -> None:
    check(lambda x: x.as_strided((5, 4), (2, 1), 1), X)
    check(lambda x: x.t().as_strided((4, 2), (2, 3)), integers(-9, 9, 3, 5))


def test_strides_of_what_is_not_contiguous() -> None:
    x = X.permute(2, 0, 1)
    check(lambda x: x.as_strided((4, 30), (30, 1)), x)
    check(lambda x: x.as_strided((3,), (2,)), random(5, 1).expand(5, 3))
    with pytest.raises(UnsupportedError, match="lie apart"):
        imported(lambda x: x.as_strided((3,), (1,)), X[:, ::2])
    with pytest.raises(UnsupportedError, match="beyond the tensor"):
        imported(lambda x: x.narrow(0, 0, 1).as_strided((40,), (1,)), X)


def test_elements_at_strides_replaced() -> None:
    check(lambda x, y: torch.as_strided_scatter(x, y, (2, 3), (7, 2), 1), X, random(2, 3))


def test_diagonals() -> None:
    for offset in (-9, -2, 0, 3):
        check(lambda x, k=offset: (x.diagonal(k), x.diagonal(k, 2, 1), x.diagonal(k, -1, 0)), X)
    check(lambda x, y: x.diagonal_scatter(y, 1, 2, 0), X, random(6, 3))
    check(lambda x, y: x.diagonal_scatter(y, -1), X, random(5, 3))
    check(lambda x: (torch.diag(x, 1), torch.trace(x)), integers(0, 9, 4, 3))
    check(lambda x: torch.einsum("iij->j", x), random(3, 3, 4))


def test_windows() -> None:
    for size, step in ((1, 1), (3, 1), (2, 2), (2, 4), (6, 3)):
        check(lambda x, s=size, t=step: x.unfold(1, s, t), X)
    check(lambda x: (x.unfold(0, 1, 1), x.unfold(0, 0, 1)), torch.tensor(2.5))


def test_copies_of_views() -> None:
    check(lambda x: (x.narrow_copy(1, 2, 3), torch.permute_copy(x, (2, 0, 1))), X)
    check(lambda x: torch.unbind_copy(x, 1), X)
