"""What the order of elements says: the middle one, the k-th, the most frequent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Pair = tuple[Tensor, Tensor]


def _squeezed(pair: Pair, dim: int, keepdim: bool) -> Pair:
    values, places = pair
    return pair if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _of_scalar(x: Tensor) -> Pair:
    """A scalar is the only element of its axis."""
    return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)


def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    """The k-th of the elements in order."""
    if x.dim() == 0:
        return _of_scalar(x)
    values, places = torch.topk(x, k, dim, largest=False)
    last = values.narrow(dim, k - 1, 1), places.narrow(dim, k - 1, 1)
    return _squeezed(last, dim, keepdim)


def median_along(x: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """The lower one of the two in the middle; the first NaN where there is one."""
    if x.dim() == 0:
        return _of_scalar(x)
    middle = (x.shape[dim] - 1) // 2 + 1
    values, places = kthvalue(x, middle, dim, keepdim=True)
    if x.is_floating_point():
        nans = x.isnan()
        first = nans.to(torch.uint8).argmax(dim, keepdim=True)
        has_nan = nans.any(dim, keepdim=True)
        values = torch.where(has_nan, float("nan"), values)
        places = torch.where(has_nan, first, places)
    return _squeezed((values, places), dim, keepdim)


def nanmedian_along(x: Tensor, dim: int, keepdim: bool = False) -> Pair:
    """The lower one of the two in the middle of those that are numbers."""
    if x.dim() == 0:
        return _of_scalar(x)
    if not x.is_floating_point():
        return median_along(x, dim, keepdim)
    values, places = torch.sort(x, dim=dim, stable=True)
    count = x.isnan().logical_not().sum(dim, keepdim=True)
    middle = ((count - 1).clamp_min(0)) // 2
    return _squeezed((values.gather(dim, middle), places.gather(dim, middle)), dim, keepdim)


def median(x: Tensor) -> Tensor:
    """The median of all elements; NaN of none."""
    if x.numel() == 0:
        return torch.full((), float("nan"), dtype=x.dtype, device=x.device)
    return median_along(x.reshape(-1), 0)[0]


def nanmedian(x: Tensor) -> Tensor:
    """The median of all elements that are numbers; NaN of none."""
    if x.numel() == 0:
        return torch.full((), float("nan"), dtype=x.dtype, device=x.device)
    return nanmedian_along(x.reshape(-1), 0)[0]


def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    """The most frequent element, of several the least, and the last place where it stands."""
    if x.dim() == 0:
        return _of_scalar(x)
    values, places = torch.sort(x, dim=dim, stable=True)
    rows, from_rows = values.movedim(dim, -1), places.movedim(dim, -1)
    steps = torch.arange(rows.shape[-1], device=x.device).expand(rows.shape)
    starts = torch.ones_like(rows, dtype=torch.bool)
    if rows.shape[-1] > 1:
        changes = rows[..., 1:] != rows[..., :-1]
        starts = torch.cat([starts[..., :1], changes], -1)
    begins = torch.cummax(torch.where(starts, steps, 0), -1)[0]
    best = (steps - begins).argmax(-1, keepdim=True)
    found = rows.gather(-1, best).movedim(-1, dim), from_rows.gather(-1, best).movedim(-1, dim)
    return _squeezed(found, dim, keepdim)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.kthvalue.default": kthvalue,
    "aten.median.default": median,
    "aten.median.dim": median_along,
    "aten.nanmedian.default": nanmedian,
    "aten.nanmedian.dim": nanmedian_along,
    "aten.mode.default": mode,
}
