"""Gradients of pools: of maxima to where they were, of means by a divisor to whole windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from tilewright.frontends.torch.decompose.pool import padding_of_windows

Ints = Sequence[int]


def greatest_backward(rank: int) -> Callable[..., Tensor]:
    """Of maxima whose places within their channel are the last argument."""

    def decompose(grad_output: Tensor, x: Tensor, *window: Any, indices: Any = None) -> Tensor:
        places = indices if indices is not None else window[-1]
        front = x.shape[:-rank]
        lines = grad_output.new_zeros([*front, prod(x.shape[-rank:])])
        slopes, at = (t.flatten(-rank) for t in (grad_output, places))
        return lines.scatter_add(-1, at, slopes).reshape(x.shape)

    return decompose


def average_backward(rank: int) -> Callable[..., Tensor]:
    """By a given divisor: of a mean over padded data, times how many elements it is of."""
    pulled = {2: torch.ops.aten.avg_pool2d_backward, 3: torch.ops.aten.avg_pool3d_backward}[rank]

    def decompose(
        grad_output: Tensor,
        x: Tensor,
        kernel_size: Ints,
        stride: Ints,
        padding: Ints,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Tensor:
        if divisor_override is None:
            return NotImplemented
        taps, steps, pads = (
            list(v) * (rank // len(v)) for v in (kernel_size, stride or kernel_size, padding)
        )
        around = padding_of_windows(x.shape[-rank:], taps, steps, pads, ceil_mode)
        dy = grad_output * (prod(taps) / divisor_override)
        padded = torch.constant_pad_nd(x, around)
        dx = pulled(dy, padded, taps, steps, [0] * rank, False, True, None)
        return torch.constant_pad_nd(dx, [-n for n in around])

    return decompose


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    **{f"aten.max_pool{d}d_with_indices_backward.default": greatest_backward(d) for d in (2, 3)},
    **{f"aten.adaptive_max_pool{d}d_backward.default": greatest_backward(d) for d in (2, 3)},
    **{f"aten.fractional_max_pool{d}d_backward.default": greatest_backward(d) for d in (2, 3)},
    **{f"aten.avg_pool{d}d_backward.default": average_backward(d) for d in (2, 3)},
}
