"""Windows that slide along an axis."""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import as_expr, as_int
from tilewright.core.dtypes import I64
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext, axis_of
from tilewright.ops.tensor.indexing import GatherAttrs


def unfold(c: TorchContext, n: AtenCall) -> Result:
    """All windows of a size, at equal distances; their elements are a last axis."""
    x, size, step = n["self"], as_int(as_expr(n["size"])), as_int(as_expr(n["step"]))
    rank = c.type(x).rank
    if not rank:
        return c.reshape(n, x, n.type.shape)
    axis = axis_of(n["dimension"], rank)
    length = as_int(c.type(x).shape[axis])
    if length is None or size is None or step is None:
        raise n.unsupported("windows along an axis of symbolic size", "sizes must be numbers")
    starts = np.arange((length - size) // step + 1)[:, None] * step
    places = c.constant(starts + np.arange(size), I64, "places")
    y = c.add(n, "gather", x, places, attrs=GatherAttrs(axis))
    return c.transpose(n, y, [a for a in range(rank + 1) if a != axis + 1] + [axis + 1])


CONVERTERS: dict[str, Converter] = {"aten.unfold": unfold}
