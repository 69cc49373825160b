"""Gradients of bags of rows of a table: by the table, and by the weight of each row of a bag."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tilewright.frontends.torch.decompose.embedding import MAX, MEAN


def bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """By the table; a sparse gradient stays with torch.

    So does one by frequency, since torch divides by other frequencies on the CPU than on a GPU.
    """
    if sparse or scale_grad_by_freq:
        return NotImplemented
    return dense_bag_backward(
        *(grad, indices, offset2bag, bag_size, maximum_indices, num_weights),
        *(scale_grad_by_freq, mode, per_sample_weights, padding_idx),
    )


def dense_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """By the table: each of its rows has the sum of what its bags have."""
    if scale_grad_by_freq:
        return NotImplemented
    table = grad.new_zeros([num_weights, grad.shape[1]])
    if mode == MAX:
        found = maximum_indices >= 0
        rows = torch.where(found, grad, 0)
        return table.scatter_add(0, torch.where(found, maximum_indices, 0), rows)
    if mode == MEAN:
        grad = grad / bag_size.clamp_min(1).unsqueeze(1).to(grad.dtype)
    rows = grad.index_select(0, offset2bag)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    if padding_idx >= 0:
        rows = torch.where((indices != padding_idx).unsqueeze(1), rows, 0)
    return table.index_add(0, indices, rows)


def sample_weights_backward(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    """By the weights of the rows of bags."""
    rows = grad.index_select(0, offset2bag) * weight.index_select(0, indices)
    found = rows.sum(1)
    return torch.where(indices != padding_idx, found, 0) if padding_idx >= 0 else found


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten._embedding_bag_backward.default": bag_backward,
    "aten._embedding_bag_dense_backward.default": dense_bag_backward,
    "aten._embedding_bag_per_sample_weights_backward.default": sample_weights_backward,
}
