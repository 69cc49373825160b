"""Products of complex matrices, vectors and kernels, compared with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from tests.for_each import for_each
from tests.frontends.torch.convert.test_complex import W, Z
from tests.frontends.torch.eager import check

PRODUCTS: list[Callable[..., Any]] = [
    lambda a, b: a @ b.T, lambda a, b: a[None] @ b.H[None], lambda a, b: a @ b[0],
    lambda a, b: torch.addmm(a[:, :3], a, b.T, alpha=2j, beta=0.5), lambda a, b: a @ b.real.T.to(a),
    lambda a, b: torch.baddbmm(a[None, :, :3], a[None], b.T[None]),
    lambda a, b: torch.dot(a[0], b[0]),
    lambda a, b: F.linear(a, b, a[0, :3]), lambda a, b: torch.einsum("ij,kj->ik", a, b),
    lambda a, b: F.conv1d(a[None], b[:, :3].T.reshape(3, 3, 1), a[0, :3]),
]  # fmt: skip


@for_each("index", range(len(PRODUCTS)))
def test_products(index: int) -> None:
    check(PRODUCTS[index], Z, W, rtol=1e-5, atol=1e-5)
