"""Gradients of padding by the elements at the borders: these have those of their copies too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def replication_backward(grad_output: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
    """`padding` is that before and behind the last axis, then of the axis before it."""
    dx = grad_output
    for i, before in enumerate(padding[::2]):
        axis, size = x.dim() - 1 - i, x.shape[x.dim() - 1 - i]
        steps = torch.arange(dx.shape[axis], device=x.device)
        shape = [*dx.shape[:axis], size, *dx.shape[axis + 1 :]]
        dx = dx.new_zeros(shape).index_add(axis, (steps - before).clamp(0, size - 1), dx)
    return dx


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    f"aten.replication_pad{d}d_backward.default": replication_backward for d in (1, 2, 3)
}
