"""Gradients of operators that take and write elements at indices: gather, scatter, topk, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tilewright.arith.expr import const
from tilewright.core.dtypes import I64
from tilewright.ops.gradient.formula import (
    Rule,
    add_rows,
    as_index,
    constant,
    count_up,
    expand,
    flattened,
    full,
    modulo,
    scattered,
    scattered_slices,
    size_of,
    total,
    zeros_like,
)
from tilewright.ops.op import flat, normalize_axis
from tilewright.ops.tensor.indexing import (
    GatherAttrs,
    GatherNdAttrs,
    OneHotAttrs,
    ReverseSequenceAttrs,
)
from tilewright.ops.tensor.scatter import ScatterElementsAttrs, ScatterNdAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.ops.tensor.tensor_scatter import TensorScatterAttrs
from tilewright.ops.tensor.topk import TopKAttrs
from tilewright.ops.traced_value import Value, where

Pulled = tuple[Value | None, ...]


def _gather(attrs: GatherAttrs, ins: Sequence[Value], y: Value, dy: Value) -> Pulled:
    """Slices are added up where they were taken: an embedding's gradient."""
    data, indices = ins
    axis = normalize_axis("gather", attrs.axis, len(data.shape))
    rows = flattened(dy, axis, axis + len(indices.shape))
    places = flattened(indices, 0, len(indices.shape))
    return add_rows(rows, axis, data.shape[axis], places, attrs.mode), None


def _gather_elements(attrs: GatherAttrs, ins: Sequence[Value], y: Value, dy: Value) -> Pulled:
    return scattered(ins[0], attrs.axis, ins[1], dy, attrs.mode), None


def _gather_nd(attrs: GatherNdAttrs, ins: Sequence[Value], y: Value, dy: Value) -> Pulled:
    data, indices = ins
    tuples = _with_batches(as_index(indices), attrs.batch_dims)
    return scattered_slices(zeros_like(data), tuples, dy, attrs.mode), None


def _with_batches(tuples: Value, count: int) -> Value:
    """Tuples of indices that name the leading dimensions, which they have themselves, too."""
    if not count:
        return tuples
    shape = (*tuples.shape[:-1], const(1))
    own = []
    for d in range(count):
        line = tuple(n if k == d else const(1) for k, n in enumerate(shape))
        own.append(expand(count_up(tuples, shape[d]).reshape(line), shape))
    return own[0].apply("concat", *own[1:], tuples, attrs=ConcatAttrs(len(shape) - 1))


def _one_hot(attrs: OneHotAttrs, ins: Sequence[Value], y: Value, dy: Value) -> Pulled:
    """The gradient of [off, on]."""
    indices, values = ins
    ends = constant(values, np.array([0, 1], values.dtype.numpy))
    hot = indices.apply("one_hot", ends, attrs=attrs)
    every = range(len(dy.shape))
    sums = [total(dy * chosen, every, keepdims=False) for chosen in (1 - hot, hot)]
    off, on = (s.reshape((const(1),)) for s in sums)
    return None, off.apply("concat", on, attrs=ConcatAttrs(0))


def _reverse_sequence(
    attrs: ReverseSequenceAttrs, ins: Sequence[Value], y: Value, dy: Value
) -> Pulled:
    return dy.apply("reverse_sequence", ins[1], attrs=attrs), None


def _scatter_elements(
    attrs: ScatterElementsAttrs, ins: Sequence[Value], y: Value, dy: Value
) -> Pulled:
    take = GatherAttrs(attrs.axis, attrs.mode)

    def taken(x: Value) -> Value:
        return x.apply("gather_elements", ins[1], attrs=take)

    def put(base: Value, updates: Value, reduction: str) -> Value:
        how = replace(attrs, reduction=reduction)
        return base.apply("scatter_elements", ins[1], updates, attrs=how)

    return _Scatter(ins, y, dy, taken, put).gradients(attrs.reduction)


def _scatter_nd(attrs: ScatterNdAttrs, ins: Sequence[Value], y: Value, dy: Value) -> Pulled:
    def taken(x: Value) -> Value:
        return x.apply("gather_nd", ins[1], attrs=GatherNdAttrs(0, attrs.mode))

    def put(base: Value, updates: Value, reduction: str) -> Value:
        how = replace(attrs, reduction=reduction)
        return base.apply("scatter_nd", ins[1], updates, attrs=how)

    return _Scatter(ins, y, dy, taken, put).gradients(attrs.reduction)


class _Scatter:
    """What becomes of data and updates, for either way of naming places.

    `taken` reads what lies in the place of each update, `put` joins updates with what lies there.
    """

    def __init__(
        self,
        ins: Sequence[Value],
        y: Value,
        dy: Value,
        taken: Callable[[Value], Value],
        put: Callable[[Value, Value, str], Value],
    ) -> None:
        self.data, _, self.updates = ins
        self.y, self.dy, self.taken, self.put = y, dy, taken, put

    def gradients(self, reduction: str) -> Pulled:
        """The gradients of data, indices and updates."""
        rule = {
            "none": self._none,
            "add": self._add,
            "mul": self._mul,
            "min": self._extreme,
            "max": self._extreme,
        }[reduction]
        data, updates = rule()
        return data, None, updates

    def _none(self) -> tuple[Value, Value]:
        """Of several updates of one place the last has remained."""
        shape = self.updates.shape
        order = count_up(self.dy, size_of(shape)).reshape(shape)
        last = self.put(full(self.dy, self.data.shape, -1, I64), order, "none")
        remained = self.taken(last).apply("equal", order)
        covered = self.put(self.dy, zeros_like(self.updates), "none")
        return covered, where(remained, self.taken(self.dy), self.dy.number(0))

    def _add(self) -> tuple[Value, Value]:
        return self.dy, self.taken(self.dy)

    def _mul(self) -> tuple[Value, Value]:
        """Each factor's gradient is the product of the others; a 0 among them is taken out."""
        one = full(self.dy, self.data.shape, 1.0)
        factor = self.put(one, self.updates, "mul")
        zero = self.updates.apply("equal", 0)
        ones = full(self.updates, self.updates.shape, 1.0)
        nonzero = self.put(self.data, where(zero, ones, self.updates), "mul")
        marks = zero.cast(self.dy.dtype)
        count = self.taken(self.put(zeros_like(self.data), marks, "add"))
        others = self.taken(nonzero)
        whole = where(zero, others, others / where(zero, ones, self.updates))
        alone = count.apply("equal", marks)
        return self.dy * factor, where(alone, self.taken(self.dy) * whole, self.dy.number(0))

    def _extreme(self) -> tuple[Value, Value]:
        """What equals the result shares its gradient."""
        mine = self.data.apply("equal", self.y).cast(self.dy.dtype)
        theirs = self.updates.apply("equal", self.taken(self.y)).cast(self.dy.dtype)
        share = self.dy / self.put(mine, theirs, "add")
        return mine * share, theirs * self.taken(share)


def _tensor_scatter(
    attrs: TensorScatterAttrs, ins: Sequence[Value | None], y: Value, dy: Value
) -> Pulled:
    cache, update, starts = (*ins, None)[:3]
    assert cache is not None
    assert update is not None
    zeros = zeros_like(update)
    given = () if starts is None else (starts,)
    covered = dy.apply("tensor_scatter", zeros, *given, attrs=attrs)
    axis = normalize_axis("tensor_scatter", attrs.axis, len(cache.shape))
    line = tuple(n if d == axis else const(1) for d, n in enumerate(update.shape))
    places = count_up(dy, update.shape[axis]).reshape(line)
    if starts is not None:
        batch = tuple(n if d == 0 else const(1) for d, n in enumerate(update.shape))
        places = places + as_index(starts).reshape(batch)
    if attrs.circular:
        places = modulo(places, cache.shape[axis])
    every = expand(places, update.shape)
    new = dy.apply("gather_elements", every, attrs=GatherAttrs(axis, "clip"))
    return (covered, new, None)[: len(ins)]


def _topk(
    attrs: TopKAttrs, ins: Sequence[Value], y: tuple[Value, Value], dy: tuple[Value | None, ...]
) -> Pulled:
    if dy[0] is None:
        return (None,)
    return (scattered(ins[0], attrs.axis, y[1], dy[0], "clip"),)


RULES: dict[str, Rule] = {
    "gather": _gather,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "one_hot": _one_hot,
    "reverse_sequence": _reverse_sequence,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "tensor_scatter": _tensor_scatter,
    "topk": _topk,
    **dict.fromkeys(("index_positions", "flatnonzero", "argsort_rows"), flat),
}
NO_GRADIENT = {"topk_rows": "passes make it of topk, of which gradients are taken before"}
