"""Arithmetic on elements that is a few operations of ours, and small products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.frontends.torch.decompose.promotion import promoted, widened


def fmax(x: Tensor, other: Tensor) -> Tensor:
    """The greater one; where one is NaN the other."""
    a, b = promoted(x, other)
    return torch.where(a.isnan(), b, torch.where(b.isnan(), a, torch.maximum(a, b)))


def fmin(x: Tensor, other: Tensor) -> Tensor:
    """The lesser one; where one is NaN the other."""
    a, b = promoted(x, other)
    return torch.where(a.isnan(), b, torch.where(b.isnan(), a, torch.minimum(a, b)))


def hypot(x: Tensor, other: Tensor) -> Tensor:
    """The root of the sum of squares, of numbers scaled so that no square overflows."""
    a, b = promoted(x, other)
    dtype, (a, b) = a.dtype, (widened(v).abs() for v in (a, b))
    long, short = torch.maximum(a, b), torch.minimum(a, b)
    ratio = torch.where(long == 0, 0, short / long)
    found = long * torch.sqrt(1 + ratio * ratio)
    return torch.where(a.isinf() | b.isinf(), math.inf, found).to(dtype)


def angle(x: Tensor) -> Tensor:
    """That of a real number in the complex plane: pi below zero."""
    if x.is_complex():
        return NotImplemented
    (x,) = promoted(x, to_float=True)
    return torch.where(x.isnan(), x, torch.where(x < 0, math.pi, 0).to(x.dtype))


def addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """A product added, rounded once."""
    a, b, c = promoted(x, tensor1, tensor2)
    return (widened(a) + value * widened(b) * widened(c)).to(a.dtype)


def addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """A quotient added, rounded once."""
    a, b, c = promoted(x, tensor1, tensor2)
    return (widened(a) + value * widened(b) / widened(c)).to(a.dtype)


def addbmm(
    x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """A sum of products, which is one product of matrices side by side."""
    wide = batch1.permute(1, 0, 2).reshape(batch1.shape[1], -1)
    tall = batch2.reshape(-1, batch2.shape[2])
    return torch.addmm(x, wide, tall, beta=beta, alpha=alpha)


def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """The product of three tensors that get new axes, summed along some axes: two at a time."""
    rank = i1.dim() + len(expand1)
    letters = [chr(ord("a") + axis) for axis in range(rank)]
    operands = [
        "".join(letter for axis, letter in enumerate(letters) if axis not in expand)
        for expand in (expand1, expand2, expand3)
    ]
    result = "".join(letter for axis, letter in enumerate(letters) if axis not in sumdim)
    return torch.einsum(f"{','.join(operands)}->{result}", i1, i2, i3)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.fmax.default": fmax,
    "aten.fmin.default": fmin,
    "aten.hypot.default": hypot,
    "aten.angle.default": angle,
    "aten.addcmul.default": addcmul,
    "aten.addcdiv.default": addcdiv,
    "aten.addbmm.default": addbmm,
    "aten._trilinear.default": trilinear,
}
