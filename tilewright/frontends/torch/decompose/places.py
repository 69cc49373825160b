"""Elements read from and written to places that tensors say, where more than one step is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.core.errors import UnsupportedError

# What is joined by each way leaves these as they are.
_NEUTRAL: dict[str, float] = {"sum": 0, "mean": 0, "prod": 1}


def _neutral(reduce: str, dtype: torch.dtype) -> float:
    if reduce in _NEUTRAL:
        return _NEUTRAL[reduce]
    if dtype == torch.bool:
        return float(reduce == "amin")
    if dtype.is_floating_point:
        return float("inf") if reduce == "amin" else -float("inf")
    limits = torch.iinfo(dtype)
    return int(limits.max if reduce == "amin" else limits.min)


def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Joined in one of torch's ways, with or without what is there."""
    if reduce != "mean" and include_self:
        return NotImplemented
    if x.dim() == 0:
        row = scatter_reduce_row(
            x.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self
        )
        return row.reshape(())
    return scatter_reduce_row(x, dim, index, src, reduce, include_self)


def scatter_reduce_row(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    """The same of a tensor that has axes."""
    start = x
    if not include_self:
        start = x.scatter(dim, index, _neutral(reduce, x.dtype))
    if reduce != "mean":
        return torch.scatter_reduce(start, dim, index, src, reduce)
    total = torch.scatter_add(start, dim, index, src)
    ones = torch.ones_like(src)
    count = torch.ones_like(x) if include_self else torch.zeros_like(x)
    count = torch.scatter_add(count, dim, index, ones).clamp_min(1)
    if x.is_floating_point():
        return total / count
    return torch.div(total, count, rounding_mode="floor")


def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Slices along an axis joined with those at the places that an index says."""
    if x.dim() == 0:
        row = index_reduce(
            x.reshape(1), 0, index, source.reshape(-1), reduce, include_self=include_self
        )
        return row.reshape(())
    axis = dim % x.dim()
    source = source.reshape(1).expand(index.numel()) if source.dim() == 0 else source
    behind = [1] * (x.dim() - axis - 1)
    places = index.reshape([-1, *behind]).expand(source.shape)
    return torch.scatter_reduce(x, axis, places, source, reduce, include_self=include_self)


def take(x: Tensor, index: Tensor) -> Tensor:
    """Elements by their place in the row of all elements."""
    return x.reshape(-1).index_select(0, index.reshape(-1)).reshape(index.shape)


def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Elements written to places in the row of all elements."""
    flat = x.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate)
    return flat.reshape(x.shape)


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """One element of the source after the other, wherever the mask holds."""
    whole, holds = torch.broadcast_tensors(x, mask)
    if whole.numel() == 0:
        return whole.clone()
    if source.numel() == 0:
        return whole.clone()
    flags = holds.reshape(-1)
    nth = torch.cumsum(flags.to(torch.int64), 0) - 1
    nth = nth.clamp(0, source.numel() - 1)
    taken = source.reshape(-1).index_select(0, nth)
    return torch.where(flags, taken, whole.reshape(-1)).reshape(whole.shape)


def index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Behind one mask, several elements: rows are counted, and each takes the next one."""
    first = indices[0] if len(indices) == 1 else None
    one = values.numel() == 1 and not accumulate
    if first is None or first.dtype != torch.bool or one:
        return NotImplemented
    rows = x.reshape(-1, *x.shape[first.dim() :])
    flags = first.reshape(-1)
    source = values.to(x.dtype)
    if source.dim() < rows.dim() or source.shape[0] == 1:
        taken = source.expand(rows.shape)
    else:
        nth = (torch.cumsum(flags.to(torch.int64), 0) - 1).clamp(0, max(source.shape[0] - 1, 0))
        if source.shape[0] == 0:
            return x.clone()
        taken = source.expand(-1, *rows.shape[1:]).index_select(0, nth)
    new = rows + taken if accumulate else taken
    where = flags.reshape(-1, *[1] * (rows.dim() - 1))
    return torch.where(where, new, rows).reshape(x.shape)


def nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first places of elements other than zero, and a filling behind them."""
    if x.dim() == 0:
        return x.new_empty([size, 0], dtype=torch.int64)
    flags = (x != 0).reshape(-1)
    rows = torch.full([size + 1, x.dim()], fill_value, dtype=torch.int64, device=x.device)
    if x.numel() == 0:
        return rows[:size]
    nth = torch.cumsum(flags.to(torch.int64), 0) - 1
    # what does not belong is written to one more row, which is cut off
    target = torch.where(flags & (nth < size), nth, size)
    axes = []
    flat = torch.arange(x.numel(), device=x.device)
    for n in reversed(x.shape):
        axes.append(flat % n)
        flat = flat // n
    places = torch.stack(list(reversed(axes)), 1)
    return rows.index_put((target,), places)[:size]


def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """Each position as often as is said, where the length of the result is known."""
    if output_size is None:
        raise UnsupportedError(
            "torch.values",
            "aten.repeat_interleave: the length of the result depends on values",
            help="give output_size",
        )
    ends = torch.cumsum(repeats.to(torch.int64), 0)
    steps = torch.arange(output_size, device=repeats.device)
    found = torch.searchsorted(ends, steps, right=True)
    return found.to(repeats.dtype if repeats.dtype == torch.int32 else torch.int64)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.scatter_reduce.two": scatter_reduce,
    "aten.index_reduce.default": index_reduce,
    "aten.take.default": take,
    "aten.put.default": put,
    "aten.masked_scatter.default": masked_scatter,
    "aten.index_put.default": index_put,
    "aten.nonzero_static.default": nonzero_static,
    "aten.repeat_interleave.Tensor": repeat_interleave,
}
