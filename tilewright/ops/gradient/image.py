"""Gradients of resizing, of sampling at positions that are computed, and of regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.expr import const
from tilewright.arith.simplify import simplify
from tilewright.ir.graph.nodes import Attrs
from tilewright.ops.gradient.formula import (
    Parts,
    Rule,
    total,
    transpose,
    value,
    wide,
)
from tilewright.ops.image.resize import ResizeAttrs, resampled_axes
from tilewright.ops.op import GraphOps, flat
from tilewright.ops.tensor.creation import EyeAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.traced_value import Value


def _resize(attrs: ResizeAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """Along each axis the product with the matrix that resizing multiplies by.

    It is what resizing makes of the unit matrix.
    """
    x = ins[0]
    dx = wide(dy)
    for axis in resampled_axes(attrs, x.shape):
        dx = _pulled(attrs, dx, axis, x)
    return (dx.cast(x.dtype),)


def _pulled(attrs: ResizeAttrs, dy: Value, axis: int, x: Value) -> Value:
    size = x.shape[axis]
    eye = EyeAttrs((size, size), 0, dy.dtype)
    unit = dy.called(dy.g.add("eye_like", attrs=eye))
    one, region = (const(1), const(1)), (0.0, 1.0)
    along = replace(
        attrs,
        shape=(simplify(attrs.shape[axis]), size),
        scales=(attrs.scales[axis], one),
        roi=(attrs.roi[axis], region) if attrs.roi else (),
        extrapolation=0.0,
    )
    op = "resize_nearest" if attrs.mode == "nearest" else "resize"
    matrix = unit.apply(op, attrs=along)
    rank = len(dy.shape)
    others = [d for d in range(rank) if d != axis]
    rows = transpose(dy, (*others, axis))
    found = rows.apply("matmul", matrix) if rank > 1 else _as_row(rows, matrix)
    return transpose(found, (*range(axis), rank - 1, *range(axis, rank - 1)))


def _as_row(x: Value, matrix: Value) -> Value:
    row = x.reshape((const(1), *x.shape)).apply("matmul", matrix)
    return row.reshape(row.shape[1:])


def _resample(g: GraphOps, _: Attrs, ins: Sequence[str]) -> str:
    x, places, weights = (value(g, name) for name in ins)
    last = len(x.shape) - 1
    taken = x.apply("gather", places, attrs=GatherAttrs(last))
    return total(taken * weights, (last,), keepdims=False).name


RULES: dict[str, Rule] = {
    "resize": _resize,
    "resize_nearest": _resize,
    "non_max_suppression": flat,
    "mt19937": flat,
    "random": flat,
    "decision_trees": flat,
}
PARTS: dict[str, Parts] = {"resample": _resample}
NO_GRADIENT = {
    "pairwise_coupling": "its result is the limit of an iteration",
}
