"""Steps whose results have sizes that are known only from values."""

from __future__ import annotations

import numpy as np

from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.templates.plain import any_axis


def positions(d: PartialModel, x: str) -> list[str]:
    """Where elements are not 0, or those that a condition takes."""
    if d.rng.random() < 0.5:
        return d.attempt(d.node("NonZero", [x]))
    array = d.values[x]
    if array.ndim and d.rng.random() < 0.5:
        axis = any_axis(d, x)
        chosen = d.fresh(np.dtype(bool), (d.rng.randint(0, array.shape[axis]),))
        return d.attempt(d.node("Compress", [x, chosen], axis=axis))
    chosen = d.fresh(np.dtype(bool), (max(1, array.size // 2),))
    return d.attempt(d.node("Compress", [x, chosen]))


def unique(d: PartialModel, x: str) -> list[str]:
    """Each element, or each slice along an axis, once."""
    options = {"sorted": d.rng.randrange(2)}
    if d.values[x].ndim and d.rng.random() < 0.5:
        options["axis"] = any_axis(d, x)
    return d.attempt(d.node("Unique", [x], d.rng.choice((1, 2, 3, 4)), **options))


def boxes(d: PartialModel, x: str) -> list[str]:
    """Boxes that do not overlap too much; `x` has their scores where it can."""
    array = d.values[x]
    if array.dtype == np.float32 and array.ndim == 3 and np.isfinite(array).all():
        scores = x
    else:
        shape = [d.rng.choice((1, 2)), d.rng.choice((1, 2, 3)), d.rng.choice((0, 1, 5, 13))]
        scores = d.give(np.random.default_rng(d.rng.getrandbits(32)).random(shape, np.float32))
    batch, _, many = d.values[scores].shape
    draw = np.random.default_rng(d.rng.getrandbits(32))
    corners = draw.integers(0, 12, (batch, many, 2, 2))
    found = np.concatenate([corners.min(2), corners.max(2) + 1], -1).astype(np.float32)
    limits = [d.setting([d.rng.randrange(5)])]
    for most in (1.0, 0.8)[: d.rng.randrange(3)]:
        limits.append(d.give(np.array([d.rng.random() * most], np.float32)))
    form = {"center_point_box": d.rng.randrange(2)}
    return d.attempt(d.node("NonMaxSuppression", [d.give(found), scores, *limits], **form))
