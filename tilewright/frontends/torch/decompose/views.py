"""Views by strides, diagonals and windows, which become slices, other shapes or indices.

The elements that strides address are those of the tensor in the order of memory. What lies in the
same storage beyond the tensor itself is not known when a graph is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.core.errors import UnsupportedError

Ints = Sequence[int]


def _in_memory(x: Tensor) -> Tensor:
    """The elements of a tensor in the order of memory; along axes of stride 0 there is one."""
    strides = x.stride()
    for axis, stride in enumerate(strides):
        if stride == 0 and x.shape[axis] > 1:
            x = x.narrow(axis, 0, 1)
    order = sorted(range(x.dim()), key=lambda a: (strides[a], x.shape[a]), reverse=True)
    packed, expected = x.permute(order), 1
    for size, axis in zip(reversed(packed.shape), reversed(order), strict=True):
        if size != 1 and strides[axis] != expected:
            raise _unknown(x, "its own elements lie apart from each other")
        expected *= size
    return packed.reshape(-1)


def _unknown(x: Tensor, why: str) -> UnsupportedError:
    return UnsupportedError(
        "torch.strides",
        f"aten.as_strided on a tensor of shape {list(x.shape)}: {why}",
        help="strides may address what the tensor itself holds; call as_strided on its base",
    )


def _offset(x: Tensor, offset: int | None) -> int:
    """Where the first element lies, counted from the first of the tensor."""
    return 0 if offset is None else offset - int(x.storage_offset())


def _check_reach(x: Tensor, flat: Tensor, size: Ints, stride: Ints, start: int) -> None:
    last = start + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 not in size and (start < 0 or last >= flat.numel()):
        raise _unknown(x, "strides lead beyond the tensor, into other parts of its storage")


def as_strided(x: Tensor, size: Ints, stride: Ints, storage_offset: int | None = None) -> Tensor:
    """By slices where each stride spans all that is under it, else by the index of each element."""
    if 0 in size:
        return x.new_empty(list(size))
    flat, start = _in_memory(x), _offset(x, storage_offset)
    _check_reach(x, flat, size, stride, start)
    axes = [a for a in range(len(size)) if size[a] != 1 and stride[a] != 0]
    axes.sort(key=lambda a: stride[a], reverse=True)
    nested = _nested(flat, start, [size[a] for a in axes], [stride[a] for a in axes])
    if nested is None:
        return flat[_addresses(size, stride, start, x.device)]
    back = nested.permute(sorted(range(len(axes)), key=axes.__getitem__))
    ones = [size[a] if a in axes else 1 for a in range(len(size))]
    return back.reshape(ones).expand(list(size))


def _nested(flat: Tensor, start: int, size: Ints, stride: Ints) -> Tensor | None:
    """Rows of rows, each a part of the one around it; `None` where they overlap."""
    if not size:
        return flat[start : start + 1].reshape(())
    for n, here, under in zip(size[1:], stride[:-1], stride[1:], strict=True):
        if n * under > here:
            return None
    whole = size[0] * stride[0]
    rows = flat[start : start + whole]
    if rows.numel() < whole:
        rows = torch.constant_pad_nd(rows, [0, whole - rows.numel()])
    rows = rows.reshape(size[0], stride[0])
    for n, under in zip(size[1:], stride[1:], strict=True):
        rows = rows[..., : n * under].unflatten(-1, (n, under))
    return rows[..., 0]


def _addresses(size: Ints, stride: Ints, start: int, device: torch.device) -> Tensor:
    """Where each element lies."""
    places = torch.full([1] * len(size), start, dtype=torch.int64, device=device)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        behind = [1] * (len(size) - axis - 1)
        places = places + (torch.arange(n, device=device) * step).reshape([n, *behind])
    return places


def as_strided_scatter(
    x: Tensor, src: Tensor, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Tensor:
    """The elements that strides address replaced."""
    base = x.contiguous()
    flat, start = base.reshape(-1), _offset(x, storage_offset)
    _check_reach(x, flat, size, stride, start)
    places = _addresses(size, stride, start, x.device).reshape(-1)
    return flat.index_put((places,), src.reshape(-1)).reshape(base.shape)


def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Every element so many steps behind the last: a row and a column farther."""
    rows_axis, columns_axis = dim1 % x.dim(), dim2 % x.dim()
    others = [a for a in range(x.dim()) if a not in (rows_axis, columns_axis)]
    front = x.permute(*others, rows_axis, columns_axis)
    rows, columns = front.shape[-2:]
    row, column = max(-offset, 0), max(offset, 0)
    count = max(min(rows - row, columns - column), 0)
    if count == 0:
        return x.new_empty([*front.shape[:-2], 0])
    flat = front.reshape(*front.shape[:-2], rows * columns)
    first = row * columns + column
    return flat[..., first : first + (count - 1) * (columns + 1) + 1 : columns + 1]


def diagonal_scatter(
    x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A diagonal replaced."""
    rows_axis, columns_axis = dim1 % x.dim(), dim2 % x.dim()
    others = [a for a in range(x.dim()) if a not in (rows_axis, columns_axis)]
    order = [rows_axis, columns_axis, *others]
    front = x.permute(order)
    steps = torch.arange(src.shape[-1], device=x.device)
    places = (steps + max(-offset, 0), steps + max(offset, 0))
    written = front.index_put(places, src.movedim(-1, 0).to(x.dtype))
    return written.permute(sorted(range(x.dim()), key=order.__getitem__))


def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows along an axis; their elements are a new last axis."""
    if x.dim() == 0:
        return x.reshape(1)[:size]
    axis = dimension % x.dim()
    count = (x.shape[axis] - size) // step + 1
    if size <= step:
        rows = x.narrow(axis, 0, (count - 1) * step + size)
        rows = torch.constant_pad_nd(rows, [0, 0] * (x.dim() - 1 - axis) + [0, step - size])
        return rows.unflatten(axis, (count, step)).movedim(axis + 1, -1)[..., :size]
    starts = torch.arange(count, device=x.device) * step
    places = starts.unsqueeze(1) + torch.arange(size, device=x.device)
    windows = x.index_select(axis, places.reshape(-1)).unflatten(axis, (count, size))
    return windows.movedim(axis + 1, -1)


def unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    """Each position along an axis."""
    return list(torch.unbind(x, dim))


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.as_strided.default": as_strided,
    "aten.as_strided_copy.default": as_strided,
    "aten.as_strided_scatter.default": as_strided_scatter,
    "aten.diagonal.default": diagonal,
    "aten.diagonal_copy.default": diagonal,
    "aten.diagonal_scatter.default": diagonal_scatter,
    "aten.unfold.default": unfold,
    "aten.unfold_copy.default": unfold,
    "aten.narrow_copy.default": torch.narrow,
    "aten.permute_copy.default": torch.permute,
    "aten.unbind_copy.int": unbind,
}
