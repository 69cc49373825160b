"""Which interval a number lies in, and how many lie in each: searches and histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Pair = tuple[Tensor, Tensor]
# How far the edges lie from elements that are all equal.
_HALF = 0.5


def _goes_on(edge: Tensor, x: Tensor, right: bool) -> Tensor:
    """Whether the place of `x` is behind an edge; NaN is behind all."""
    return (edge > x).logical_not() if right else (edge >= x).logical_not()


def _search(edges: Tensor, x: Tensor, right: bool) -> Tensor:
    """By halving: at each step the place moves on by a power of two where that is not too far.

    Both have their rows along the last axis; the edges may be one row for all.
    """
    count = edges.shape[-1]
    place = torch.zeros(x.shape, dtype=torch.int64, device=x.device)
    if count == 0:
        return place
    own_rows = edges.dim() > 1
    for step in (1 << k for k in reversed(range(int(count).bit_length()))):
        target = place + step
        at = (target - 1).clamp_max(count - 1)
        edge = edges.gather(-1, at) if own_rows else edges.take(at)
        go = (target <= count) & _goes_on(edge, x, right)
        place = torch.where(go, target, place)
    return place


def searchsorted(
    edges: Tensor,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where a number would be inserted so that the order is kept."""
    x = x if isinstance(x, Tensor) else torch.full((), x, device=edges.device)
    dtype = torch.result_type(edges, x) if edges.dtype != x.dtype else x.dtype
    if sorter is not None:
        edges = edges.gather(-1, sorter)
    shape = x.shape
    if edges.dim() > 1:
        x = x.reshape(*edges.shape[:-1], -1) if x.dim() == 0 else x
    found = _search(edges.to(dtype), x.to(dtype), right or side == "right").reshape(shape)
    return found.to(torch.int32) if out_int32 else found


def bucketize(
    x: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The same with the operands exchanged."""
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of equal intervals; those outside are not counted."""
    flat, zeros = x.reshape(-1), torch.zeros(bins, dtype=x.dtype, device=x.device)
    if flat.numel() == 0:
        return zeros
    if min == max:
        low, high = flat.amin(), flat.amax()
        is_one = low == high
        low, high = torch.where(is_one, low - 1, low), torch.where(is_one, high + 1, high)
    else:
        low, high = (torch.full((), v, dtype=x.dtype, device=x.device) for v in (min, max))
    inside = (flat >= low) & (flat <= high)
    place = ((flat - low) / (high - low) * bins).where(inside, 0).to(torch.int64)
    place = place.clamp(0, bins - 1)
    return zeros.index_put((place,), inside.to(x.dtype), accumulate=True)


def _edges(x: Tensor, bins: int, span: Sequence[float] | None, axis: int = 0) -> Tensor:
    """The ends of equal intervals: over the given span, or that of the elements."""
    steps = torch.linspace(0, 1, bins + 1, dtype=x.dtype, device=x.device)
    if span is not None:
        low, high = span[2 * axis], span[2 * axis + 1]
        if low == high:
            low, high = low - _HALF, high + _HALF
        return torch.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return steps
    least, greatest = x.amin(), x.amax()
    is_one = least == greatest
    first = torch.where(is_one, least - _HALF, least)
    last = torch.where(is_one, greatest + _HALF, greatest)
    step = (last - first) / bins
    count = torch.arange(bins + 1, dtype=x.dtype, device=x.device)
    # from both ends, as torch does: the last edge is the greatest element itself
    from_front, from_back = first + count * step, last - (bins - count) * step
    return torch.where(count < (bins + 1) // 2, from_front, from_back)


def _counts(
    points: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool
) -> Tensor:
    """The weights of points, which are rows, in the boxes between edges."""
    sizes = [e.shape[0] - 1 for e in edges]
    place = torch.zeros(points.shape[0], dtype=torch.int64, device=points.device)
    inside = torch.ones(points.shape[0], dtype=torch.bool, device=points.device)
    for axis, (row, bins) in enumerate(zip(edges, sizes, strict=True)):
        x = points[:, axis]
        inside = inside & (x >= row[0]) & (x <= row[-1])
        here = _search(row, x, right=True) - 1
        place = place * bins + here.clamp(0, bins - 1)
    boxes = 1
    for bins in sizes:
        boxes *= bins
    given = torch.ones_like(points[:, 0]) if weight is None else weight.reshape(-1)
    given = given.to(points.dtype) * inside.to(points.dtype)
    counts = torch.zeros(boxes, dtype=points.dtype, device=points.device)
    counts = counts.index_put((place,), given, accumulate=True).reshape(sizes)
    if density:
        counts = counts / counts.sum()
        for axis, row in enumerate(edges):
            widths = (row[1:] - row[:-1]).reshape([-1, *[1] * (len(sizes) - axis - 1)])
            counts = counts / widths
    return counts


def histogram_of_edges(
    x: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> Pair:
    """How many elements lie between given edges."""
    return _counts(x.reshape(-1, 1), [bins], weight, density), bins.clone()


def histogram_of_count(
    x: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Pair:
    """How many elements lie in each of equal intervals."""
    return histogram_of_edges(x, _edges(x, bins, range), weight=weight, density=density)


def _columns(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1])


def all_edges(
    x: Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None, **_: Any
) -> list[Tensor]:
    """The edges of equal intervals along every dimension of points."""
    points = _columns(x)
    return [_edges(points[:, axis], n, range, axis) for axis, n in enumerate(bins)]


def counts_of_edges(
    x: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: bool = False
) -> Tensor:
    """How many points lie in the boxes between given edges."""
    return _counts(_columns(x), bins, weight, density)


def counts_of_bins(
    x: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tensor:
    """How many points lie in equal boxes."""
    return counts_of_edges(x, all_edges(x, bins, range=range), weight=weight, density=density)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.searchsorted.Tensor": searchsorted,
    "aten.searchsorted.Scalar": searchsorted,
    "aten.bucketize.Tensor": bucketize,
    "aten.bucketize.Scalar": bucketize,
    "aten.histc.default": histc,
    "aten.histogram.bins_tensor": histogram_of_edges,
    "aten.histogram.bin_ct": histogram_of_count,
    "aten._histogramdd_bin_edges.default": all_edges,
    "aten._histogramdd_from_bin_tensors.default": counts_of_edges,
    "aten._histogramdd_from_bin_cts.default": counts_of_bins,
}
