"""Antialiased downsampling: each new element is a weighted mean of all that it covers.

The interpolation kernel is stretched by the scale. Dimensions are known, so positions and weights
are tables: elements are gathered, multiplied and summed along one axis after the other.
"""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Expr, as_int
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, F64, I64
from tilewright.frontends.onnx.context import OnnxContext, OnnxNode
from tilewright.frontends.onnx.node_scope import traced
from tilewright.ops.image.resize import TRANSFORMS, Axis, ResizeAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.indexing import GatherAttrs

# How far a kernel reaches, in elements.
KERNEL_RADIUS = {"linear": 1, "cubic": 2}


def _kernel(distance: np.ndarray, attrs: ResizeAttrs) -> np.ndarray:
    d = np.abs(distance)
    if attrs.mode == "linear":
        return np.asarray(np.clip(1 - d, 0, 1))
    a = attrs.cubic_coeff
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _number(e: Expr) -> int:
    found = as_int(simplify(e))
    assert found is not None, e
    return found


def _reach(axis: Axis, attrs: ResizeAttrs) -> tuple[float, int]:
    """How much an axis shrinks, and how many elements to either side of a new one count for it."""
    up, down = map(_number, axis.scale)
    scale = min(up / down, 1.0)
    return scale, int(np.ceil(KERNEL_RADIUS[attrs.mode] / scale))


def tables(axis: Axis, attrs: ResizeAttrs) -> tuple[np.ndarray, np.ndarray]:
    """Which elements each new one takes along an axis of known sizes, and their weights."""
    grid = TRANSFORMS[attrs.transform](axis)
    a, b, c, size, new = map(_number, (grid.a, grid.b, grid.c, axis.size, axis.new_size))
    if not new:
        return np.zeros((0, 1), np.int64), np.zeros((0, 1))
    centre = ((np.arange(new, dtype=np.float64) * a + b) / c)[:, None]
    scale, reach = _reach(axis, attrs)
    index = np.floor(centre).astype(np.int64) + np.arange(-reach, reach + 2)
    weights = _kernel((index - centre) * scale, attrs)
    if attrs.exclude_outside:
        weights = np.where((index >= 0) & (index < size), weights, 0)
    used = np.any(weights != 0, axis=0)
    weights = weights / weights.sum(1, keepdims=True)
    return np.clip(index, 0, size - 1)[:, used], weights[:, used]


def antialiased(c: OnnxContext, n: OnnxNode, x: str, attrs: ResizeAttrs) -> str:
    """`x` brought to the new shape; every resized dimension must be known."""
    if attrs.mode not in KERNEL_RADIUS or attrs.transform not in TRANSFORMS:
        known = f"modes {', '.join(KERNEL_RADIUS)}; transformations {', '.join(TRANSFORMS)}"
        raise n.invalid(f"mode {attrs.mode!r}, transformation {attrs.transform!r}", known)
    y = traced(c, n, x)
    own, rank = y.dtype, c.type(x).rank
    y = y.cast(F64 if own == F64 else F32)
    sizes = zip(c.type(x).shape, attrs.shape, attrs.scales, strict=True)
    for place, (size, new, scale) in enumerate(sizes):
        if size is new and scale[0] is scale[1]:
            continue
        if any(as_int(e) is None for e in (size, new, *scale)):
            raise n.unsupported("antialias of a dynamic size", "fix the dimensions")
        if as_int(size) == 0:
            raise n.invalid(f"{c.type(x)} has no elements to make others of")
        axis = Axis(size, new, scale, (0.0, 1.0))
        if _number(new):
            n.check_table(_number(new), 2 * _reach(axis, attrs)[1] + 2)
        index, weights = tables(axis, attrs)
        taken = c.add(n, "gather", y.name, c.constant(index, I64), attrs=GatherAttrs(place, "clip"))
        factors = weights.reshape(*weights.shape, *(1,) * (rank - 1 - place))
        weighted = traced(c, n, taken) * traced(c, n, c.constant(factors, y.dtype))
        y = weighted.apply("reduce_sum", attrs=ReduceAttrs((place + 1,), keepdims=False))
    return y.cast(own).name
