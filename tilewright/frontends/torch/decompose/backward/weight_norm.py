"""Gradients of weights that are a direction and a length: `w = v * g / norm(v)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor


def weight_norm_backward(
    grad_w: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """By `v` and by `g`; norms are over all axes but one."""
    axes = [axis for axis in range(v.dim()) if axis != dim % v.dim()]
    norms = norms.to(v.dtype).reshape(g.shape)
    along = (grad_w * v).sum(axes, keepdim=True) / norms
    return (g / norms) * (grad_w - v * (along / norms)), along


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten._weight_norm_interface_backward.default": weight_norm_backward,
}
