"""Gradients of elements that a mask has spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor


def masked_scatter_backward(grad_output: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """By the source: what lies where its elements went, zeros for those that were left over."""
    seen = mask.expand(grad_output.shape).reshape(-1)
    count = prod(sizes)
    # what the mask hides is written to one more place, which is cut off
    places = torch.where(seen, seen.to(torch.int64).cumsum(0) - 1, count)
    found = grad_output.new_zeros([count + 1]).scatter(0, places, grad_output.reshape(-1))
    return found[:count].reshape(list(sizes))


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.masked_scatter_backward.default": masked_scatter_backward,
}
