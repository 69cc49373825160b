"""Reading elements of an array at open grids of indices, as views where the indices are regular."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.scalar_semantics import Array


def gather(array: Array, indices: tuple[Array, ...], rank: int) -> Array:
    """`array[indices]` for indices that are open over a grid of `rank` dimensions.

    Where each index walks along its own dimension of the grid in equal steps the result is a view.
    """
    slices = _slices(indices)
    if slices is None:
        return np.asarray(array[indices])
    view = array[tuple(s for s, _ in slices)]
    places = [(place, n) for n, (_, place) in enumerate(slices) if place is not None]
    fixed = tuple(n for n, (_, place) in enumerate(slices) if place is None)
    order = [n for _, n in sorted(places)]
    view = view.transpose(*fixed, *order)
    shape = [1] * rank
    for place, n in places:
        shape[place] = indices[n].size
    return np.asarray(view).reshape(shape)


def _slices(indices: tuple[Array, ...]) -> list[tuple[Any, int | None]] | None:
    """For each index its slice and the grid dimension it walks along; `None` if not regular."""
    found: list[tuple[Any, int | None]] = []
    for index in indices:
        long = [n for n, size in enumerate(index.shape) if size != 1]
        if len(long) > 1:
            return None
        flat = index.reshape(-1)
        steps = np.diff(flat)
        step = int(steps[0]) if steps.size else 1
        if flat.size == 0 or step <= 0 or not (steps == step).all():
            return None
        found.append((slice(int(flat[0]), int(flat[-1]) + 1, step), long[0] if long else None))
    along = [place for _, place in found if place is not None]
    return found if len(set(along)) == len(along) else None
