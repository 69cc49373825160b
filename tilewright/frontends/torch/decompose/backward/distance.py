"""Gradients of distances between the rows of matrices; rows that are the same have none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _slope(difference: Tensor, p: float, norm: Tensor, grad: Tensor) -> Tensor:
    """The gradient by a difference of the p-norm along its last axis."""
    norm, grad = norm.unsqueeze(-1), grad.unsqueeze(-1)
    if p == 0:
        return torch.zeros_like(difference)
    sign = difference.sign()
    if p == 1:
        return sign * grad
    size = difference.abs()
    if math.isinf(p):
        return torch.where(size == norm, sign * grad, 0)
    is_flat = (norm == 0) | (difference == 0) if p < 1 else norm == 0
    safe = torch.where(norm == 0, 1, norm)
    if p == 2:
        return torch.where(is_flat, 0, difference * (grad / safe))
    power = torch.where(is_flat, 1, size).pow(p - 1)
    return torch.where(is_flat, 0, sign * power * (grad / safe.pow(p - 1)))


def cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    """By the first of two matrices."""
    return _slope(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, cdist, grad).sum(-2)


def pdist_backward(grad: Tensor, x: Tensor, p: float, pdist: Tensor) -> Tensor:
    """By a matrix of which each pair of rows has a distance."""
    rows = x.shape[0]
    first, second = torch.triu_indices(rows, rows, 1, device=x.device)
    difference = x.index_select(0, first) - x.index_select(0, second)
    slope = _slope(difference, p, pdist, grad)
    return torch.zeros_like(x).index_add(0, first, slope).index_add(0, second, -slope)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten._cdist_backward.default": cdist_backward,
    "aten._pdist_backward.default": pdist_backward,
}
