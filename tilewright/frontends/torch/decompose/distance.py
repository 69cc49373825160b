"""Distances between the rows of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _norm(x: Tensor, p: float) -> Tensor:
    """The p-norm along the last axis."""
    size = x.abs()
    if p == 0:
        return (x != 0).to(x.dtype).sum(-1)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return (x * x).sum(-1).sqrt()
    if math.isinf(p):
        return size.amax(-1) if x.shape[-1] else x.new_zeros(x.shape[:-1])
    return size.pow(p).sum(-1).pow(1 / p)


def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """The distance of each row of one matrix from each row of another."""
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def pdist(x: Tensor, p: float = 2) -> Tensor:
    """The distances of the rows of one matrix from all rows below."""
    rows = x.shape[0]
    below = torch.triu_indices(rows, rows, 1, device=x.device)
    return _norm(x.index_select(0, below[0]) - x.index_select(0, below[1]), p)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten._cdist_forward.default": cdist,
    "aten._pdist_forward.default": pdist,
}
