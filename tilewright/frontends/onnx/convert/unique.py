"""Unique: each value, or each slice along an axis, once.

Rows are ordered; where a row differs from the one before it, a group begins. The order keeps equal
rows as they stand, so that the first row of a group is the one that occurs first.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.expr import Expr, const, product
from tilewright.core.dtypes import BF16, BOOL, F16, F32, I64, STRING, U8
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.nonzero import number, positions, reshaped
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.frontends.onnx.segments.data_dependent import HostOnly
from tilewright.ops.op import normalize_axis
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.argsort import ArgsortAttrs
from tilewright.ops.tensor.creation import RangeAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.tensor.scatter import ScatterElementsAttrs

# What is ordered in place of types that have no order of their own in native code.
_ORDERED = {BOOL: U8, F16: F32, BF16: F32}


@dataclass(frozen=True)
class _Groups:
    """Equal rows: where each group first occurs, which group a row is in, how large groups are."""

    first: NodeValue
    inverse: NodeValue
    counts: NodeValue


def unique(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The different values, where they first are, where each element went, how often they are."""
    x = n.required(0)
    if c.type(x).dtype == STRING:
        raise HostOnly(n.op_type, n.loc)
    axis = 0
    if n.has_attr("axis"):
        axis = normalize_axis("Unique", n.int_attr("axis"), c.type(x).rank)
    else:
        x = reshaped(c, n, x, c.type(x).elements)
    found = _groups(_rows(traced(c, n, x), axis))
    if not n.int_attr("sorted", 1):
        found = _as_they_occur(found)
    values = c.add(n, "gather", x, found.first.name, attrs=GatherAttrs(axis, "clip"))
    return values, found.first.name, found.inverse.name, found.counts.name


def _rows(x: NodeValue, axis: int) -> NodeValue:
    """What is compared with each other, `[rows, elements]`."""
    shape = x.g.c.type(x.name).shape
    x = x.cast(_ORDERED.get(x.dtype, x.dtype))
    if axis:
        front = (axis, *(a for a in range(len(shape)) if a != axis))
        x = x.apply("transpose", attrs=TransposeAttrs(front))
    others = product((*shape[:axis], *shape[axis + 1 :]))
    return x.called(reshaped(x.g.c, x.g.n, x.name, shape[axis], others))


def _groups(rows: NodeValue) -> _Groups:
    """Groups of equal rows in the order of the rows."""
    c, n = rows.g.c, rows.g.n
    size = c.type(rows.name).shape[0]
    order, places = _order(rows), _places(rows, size)
    before = _at(order, (places - 1).apply("max", 0))
    here, there = _at(rows, order), _at(rows, before)
    equal = here.apply("equal", there)
    if rows.dtype.is_float:
        equal = equal.apply("or", here.apply("is_nan").apply("and", there.apply("is_nan")))
    row = ReduceAttrs((1,), keepdims=False)
    starts = equal.apply("not").cast(U8).apply("reduce_max", attrs=row).apply("greater", 0)
    starts = starts.apply("or", places.apply("equal", 0))
    group = starts.cast(I64).apply("cumsum", attrs=ScanAttrs(0)) - 1
    found, count = positions(c, n, starts.name)
    begins = traced(c, n, found)
    # a group ends where the next begins; the last one ends with the rows
    following = (_places(rows, count) + 1).apply("min", _size(rows, count) - 1)
    is_last = _places(rows, count).apply("equal", _size(rows, count) - 1)
    ends = is_last.apply("where", _size(rows, size), _at(begins, following))
    return _Groups(_at(order, begins), _spread(order, group), ends - begins)


def _as_they_occur(groups: _Groups) -> _Groups:
    """The same groups, the one that occurs first in front."""
    c, n = groups.first.g.c, groups.first.g.n
    count = c.type(groups.first.name).shape[0]
    order = _order(traced(c, n, reshaped(c, n, groups.first.name, count, const(1))))
    place = _spread(order, _places(order, count))
    return _Groups(_at(groups.first, order), _at(place, groups.inverse), _at(groups.counts, order))


def _order(rows: NodeValue) -> NodeValue:
    """The numbers of rows in ascending order."""
    c, n = rows.g.c, rows.g.n
    shape = c.type(rows.name).shape
    batch = traced(c, n, reshaped(c, n, rows.name, const(1), *shape))
    order = batch.apply("argsort_rows", attrs=ArgsortAttrs())
    return traced(c, n, reshaped(c, n, order.name, shape[0]))


def _at(values: NodeValue, indices: NodeValue) -> NodeValue:
    return values.apply("gather", indices, attrs=GatherAttrs(0, "clip"))


def _spread(places: NodeValue, values: NodeValue) -> NodeValue:
    """Each value written to its place."""
    attrs = ScatterElementsAttrs(0, mode="clip")
    return values.apply("scatter_elements", places, values, attrs=attrs)


def _places(near: NodeValue, count: Expr) -> NodeValue:
    """0, 1, 2, ... as many as there are."""
    attrs = RangeAttrs(const(0), const(1), count)
    return near.called(near.g.c.add(near.g.n, "range", attrs=attrs))


def _size(near: NodeValue, size: Expr) -> NodeValue:
    return near.called(number(near.g.c, near.g.n, size))


CONVERTERS: dict[str, Converter] = {"Unique": unique}
