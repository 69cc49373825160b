from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.frontends.torch.eager import check, random
from tilewright.core.errors import UnsupportedError

X = random(5, 6, 7)


def test_slices() -> None:
    check(lambda x: (x[1:3], x[:, ::2], x[..., -3:], x[2:100], x[4:2], x[1:-1, 1:-2:3]), X)
    check(lambda x: (x[0], x[-1], x[:, 2], x.select(1, -1), x[1, 2, 3]), X)
    check(lambda x: x.narrow(1, 2, 3), X)


def test_parts_replaced() -> None:
    check(lambda x, y: x.slice_scatter(y, 1, 2, 4), X, random(5, 2, 7))
    check(lambda x, y: x.slice_scatter(y, 0, 3), X, random(2, 6, 7))
    check(lambda x, y: (x.select_scatter(y, 0, 2), x.select_scatter(y, 0, -1)), X, random(6, 7))
    with pytest.raises(UnsupportedError, match="a step of 2"):
        check(lambda x, y: x.slice_scatter(y, 0, 0, 4, 2), X, random(2, 6, 7))


def test_joining() -> None:
    check(lambda x, y: torch.cat([x, y, x], 1), X, random(5, 1, 7))
    check(lambda x: torch.cat([x]), X)
    check(lambda x: torch.cat([torch.zeros(0), x], -1), X)
    check(lambda x, y: torch.cat([x, y]), X, X.double())
    check(lambda x: (torch.stack([x, x], 1), torch.hstack([x, x])), X)


def test_splitting() -> None:
    check(lambda x: x.split(2), X)
    check(lambda x: x.split([1, 3, 2], 1), X)
    check(lambda x: x.chunk(3, -1), X)
    check(lambda x: x.unbind(1)[2:4], X)
    check(lambda x: x.tensor_split(3), X)


def test_padding() -> None:
    check(lambda x: F.pad(x, (1, 2, 0, 3), value=2.5), X)
    check(lambda x: F.pad(x, (-1, 2)), X)
    check(lambda x: F.pad(x, (2, 1), mode="reflect"), X)
    check(lambda x: F.pad(x, (2, 1, 1, 3), mode="replicate"), X)
    check(lambda x: F.pad(x, (2, 1, 1, 3), mode="circular"), X.unsqueeze(0))
    check(lambda x: F.pad(x, (1, 1), value=True), X > 0)
