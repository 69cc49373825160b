"""Pools whose windows differ in size or lie where numbers say: their elements are gathered.

Of windows along several axes the elements become one last axis, in the order of memory. Where the
greatest one was is counted within its channel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

Ints = Sequence[int]
Pair = tuple[Tensor, Tensor]


def greatest(windows: Tensor, places: Tensor) -> Pair:
    """The greatest along the last axis and its place: the first, of those that are NaN the last."""
    at = windows.argmax(-1, keepdim=True)
    if windows.is_floating_point():
        steps = torch.arange(1, windows.shape[-1] + 1, device=windows.device)
        last_nan = torch.where(windows.isnan(), steps, 0).amax(-1, keepdim=True)
        at = torch.where(last_nan > 0, last_nan - 1, at)
    places = places.expand(windows.shape)
    return windows.gather(-1, at).squeeze(-1), places.gather(-1, at).squeeze(-1)


def _shares(old: int, new: int, device: torch.device) -> Tensor:
    """The places of windows that share out an axis; shorter ones repeat their last place."""
    windows = torch.arange(new, device=device).unsqueeze(1)
    starts, stops = windows * old // new, ((windows + 1) * old + new - 1) // new
    longest = max((-(-(i + 1) * old // new) - i * old // new for i in range(new)), default=0)
    return torch.minimum(starts + torch.arange(longest, device=device), stops - 1)


def _flat_places(places: Sequence[Tensor], sizes: Ints) -> Tensor:
    """Windows along each axis, `[..., count, taps]`, as places in the row of all elements.

    They are `[..., count, count, ..., taps]` with what is common to all axes in front.
    """
    rank, common = len(sizes), places[0].dim() - 2
    flat: Any = 0
    for axis, along in enumerate(places):
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = along.shape[-2:]
        flat = flat * sizes[axis] + along.reshape([*along.shape[:-2], *shape])
    return flat.reshape([*flat.shape[: common + rank], -1])


def adaptive_max(x: Tensor, output_size: Ints) -> Pair:
    """Maxima of windows that share out each axis as evenly as they can, and where they were."""
    rank = len(output_size)
    sizes, front = x.shape[-rank:], x.shape[:-rank]
    along = [_shares(o, n, x.device) for o, n in zip(sizes, output_size, strict=True)]
    places = _flat_places(along, sizes)
    flat = x.reshape([*front, prod(sizes)])
    windows = flat.index_select(-1, places.reshape(-1)).reshape([*front, *places.shape])
    return greatest(windows, places)


def adaptive_max_of_equal(x: Tensor, output_size: Ints) -> Pair:
    """The same; where all windows have one size it is a plain pool."""
    sizes = x.shape[-len(output_size) :]
    if all(n and o % n == 0 for o, n in zip(sizes, output_size, strict=True)):
        kernel = [o // n for o, n in zip(sizes, output_size, strict=True)]
        pool = {
            2: torch.ops.aten.max_pool2d_with_indices,
            3: torch.ops.aten.max_pool3d_with_indices,
        }
        found: Pair = pool[len(kernel)](x, kernel)
        return found
    return adaptive_max(x, output_size)


def _fractional_starts(samples: Tensor, size: int, count: int, taps: int) -> Tensor:
    """Where windows start that lie at distances drawn at random, the last one at the end."""
    if count == 1:
        return torch.full_like(samples, size - taps, dtype=torch.int64).unsqueeze(-1)
    alpha = (size - taps) / (count - 1)
    steps = torch.arange(count, device=samples.device, dtype=samples.dtype)
    sample = samples.unsqueeze(-1)
    starts = ((steps + sample) * alpha).to(torch.int64) - (sample * alpha).to(torch.int64)
    return torch.where(steps == count - 1, size - taps, starts)


def fractional_max(x: Tensor, kernel_size: Ints, output_size: Ints, random_samples: Tensor) -> Pair:
    """Maxima of windows of one size at distances drawn at random, and where they were."""
    rank = len(kernel_size)
    batched = x if x.dim() == rank + 2 else x.unsqueeze(0)
    sizes, along = batched.shape[2:], []
    for axis, taps in enumerate(kernel_size):
        # samples count the axes from the last one, but for volumes from the first
        sample = random_samples[..., rank - 1 - axis if rank == 2 else axis]
        starts = _fractional_starts(sample, sizes[axis], output_size[axis], taps)
        along.append(starts.unsqueeze(-1) + torch.arange(taps, device=x.device))
    places = _flat_places(along, sizes).expand(
        [*batched.shape[:2], *output_size, prod(kernel_size)]
    )
    flat = batched.flatten(2)
    windows = flat.gather(-1, places.flatten(2)).reshape(places.shape)
    values, found = greatest(windows, places)
    shape = [*x.shape[:-rank], *output_size]
    return values.reshape(shape), found.reshape(shape)


def max_unpool(x: Tensor, indices: Tensor, output_size: Ints, *_: Any) -> Tensor:
    """Each element written to its place, zeros elsewhere."""
    rank = len(output_size)
    front = x.shape[:-rank]
    empty = x.new_zeros([*front, prod(output_size)])
    lines, places = (t.flatten(-rank) for t in (x, indices))
    return empty.scatter(-1, places, lines).reshape([*front, *output_size])


def _windows_of(size: int, taps: int, step: int, pad: int, ceil: bool) -> int:
    """How many windows there are; none starts in the padding behind."""
    span = size + 2 * pad - taps
    count = (-(-span // step) if ceil else span // step) + 1
    return count - 1 if ceil and (count - 1) * step >= size + pad else count


def padding_of_windows(sizes: Ints, taps: Ints, steps: Ints, pads: Ints, ceil: bool) -> list[int]:
    """Padding that windows reach into, of the last axis first; negative where none sees the end."""
    around: list[int] = []
    for size, k, s, p in zip(sizes, taps, steps, pads, strict=True):
        reach = (_windows_of(size, k, s, p, ceil) - 1) * s + k
        around = [p, reach - size - p, *around]
    return around


def average(rank: int) -> Callable[..., Tensor]:
    """By a given divisor: zeros around it, the mean times how many elements it is of."""
    pool = {2: torch.ops.aten.avg_pool2d, 3: torch.ops.aten.avg_pool3d}[rank]

    def decompose(
        x: Tensor,
        kernel_size: Ints,
        stride: Ints = (),
        padding: Ints = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        if divisor_override is None:
            return NotImplemented
        taps, steps, pads = (
            list(v) * (rank // len(v)) for v in (kernel_size, stride or kernel_size, padding)
        )
        around = padding_of_windows(x.shape[-rank:], taps, steps, pads, ceil_mode)
        mean: Tensor = pool(torch.constant_pad_nd(x, around), taps, steps)
        return mean * (prod(taps) / divisor_override)

    return decompose


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.avg_pool2d.default": average(2),
    "aten.avg_pool3d.default": average(3),
    "aten.adaptive_max_pool2d.default": adaptive_max_of_equal,
    "aten.adaptive_max_pool3d.default": adaptive_max_of_equal,
    "aten.fractional_max_pool2d.default": fractional_max,
    "aten.fractional_max_pool3d.default": fractional_max,
    "aten.max_unpool2d.default": max_unpool,
    "aten.max_unpool3d.default": max_unpool,
}
