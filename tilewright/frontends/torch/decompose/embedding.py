"""Rows of a table: joined by bags, held to a norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tilewright.frontends.torch.decompose.places import scatter_reduce_row

# How rows of a bag are joined, as torch numbers it.
SUM, MEAN, MAX = range(3)
# What torch adds to a norm that it divides by.
_EPSILON = 1e-7


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The rows of each bag joined; the bag of each row, and how many rows each bag has.

    The last result is which row the greatest element of a bag is of.
    """
    starts = offsets[:-1] if include_last_offset else offsets
    bags, steps = starts.shape[0], torch.arange(indices.shape[0], device=weight.device)
    bag = (torch.searchsorted(starts, steps, right=True) - 1).to(indices.dtype)
    rows = weight.index_select(0, indices)
    counted = indices != (padding_idx % weight.shape[0] if padding_idx >= 0 else padding_idx)
    sizes = torch.zeros(bags, dtype=indices.dtype, device=weight.device)
    sizes = sizes.index_add(0, bag, counted.to(indices.dtype))
    if mode == MAX:
        return _greatest(rows, indices, (bag, counted, bags, sizes))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    rows = torch.where(counted.unsqueeze(1), rows, 0)
    total = weight.new_zeros([bags, weight.shape[1]]).index_add(0, bag, rows)
    if mode == MEAN:
        total = total / sizes.clamp_min(1).unsqueeze(1).to(total.dtype)
    return total, bag, sizes, sizes


def _greatest(
    rows: Tensor, indices: Tensor, bags: tuple[Tensor, Tensor, int, Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    bag, counted, count, sizes = bags
    # what does not count is written to one more bag, which is cut off
    target = torch.where(counted, bag, count).unsqueeze(1).expand(rows.shape)
    empty = rows.new_zeros([count + 1, rows.shape[1]])
    found = scatter_reduce_row(empty, 0, target, rows, "amax", include_self=False)
    is_found = rows == found.gather(0, target)
    which = torch.where(is_found, indices.unsqueeze(1), -1)
    none = torch.full_like(found, -1, dtype=indices.dtype)
    which = torch.scatter_reduce(none, 0, target, which, "amax")
    return found[:count], bag, sizes, which[:count]


def embedding_renorm(x: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """The rows that are named scaled to a greatest norm."""
    named = torch.zeros(x.shape[0], dtype=torch.bool, device=x.device)
    named = named.index_fill(0, indices.reshape(-1), True)
    norms = torch.linalg.vector_norm(x, norm_type, 1)
    scale = torch.where(named & (norms > max_norm), max_norm / (norms + _EPSILON), 1)
    return x * scale.unsqueeze(1)


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Elements along an axis joined by segments, whose lengths or ends are given."""
    if indices is not None or (lengths is None and offsets is None):
        return NotImplemented
    if lengths is None:
        assert offsets is not None
        lengths = offsets.diff(dim=-1)
    axis = axis % data.dim()
    steps = torch.arange(data.shape[axis], device=data.device)
    ends = lengths.cumsum(-1)
    steps = steps.expand([*data.shape[:axis], -1]).contiguous()
    segment = torch.searchsorted(ends, steps, right=True)
    places = segment.reshape([*segment.shape, *[1] * (data.dim() - axis - 1)]).expand(data.shape)
    kind = {"max": "amax", "min": "amin", "mean": "sum"}.get(reduce, reduce)
    start = {"amax": -float("inf"), "amin": float("inf"), "prod": 1.0}.get(kind, 0.0)
    segments = lengths.shape[-1]
    # what lies behind the last segment is joined in one more, which is cut off
    shape = [*data.shape[:axis], segments + 1, *data.shape[axis + 1 :]]
    start = start if initial is None else initial
    found = torch.scatter_reduce(data.new_full(shape, start), axis, places, data, kind)
    found = found.narrow(axis, 0, segments)
    if reduce != "mean":
        return found
    count = lengths.reshape([*lengths.shape, *[1] * (data.dim() - axis - 1)]).to(data.dtype)
    none = float("nan") if initial is None else initial
    return torch.where(count > 0, found / count, none)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten._embedding_bag.default": embedding_bag,
    "aten._embedding_bag_forward_only.default": embedding_bag,
    "aten.embedding_renorm.default": embedding_renorm,
    "aten.segment_reduce.default": segment_reduce,
}
