"""Cutting tensors apart and joining them: slice, concat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.arith.expr import TRUE, Expr, as_int, ceildiv, const, select
from tilewright.arith.simplify import prove, simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.op import Op, fail, normalize_axis, same_dtype
from tilewright.ops.shape.assumptions import same_size


@node
class SliceAttrs(Attrs):
    """One start, stop and step a dimension, as in `range`: counted from the front, in bounds.

    A slice with a negative step runs down from `start` to just above `stop`, which is -1 to take
    the first element too. Symbolic bounds that do lie outside read zeros, unless a check makes sure
    that they lie `inside`.
    """

    starts: tuple[Expr, ...]
    stops: tuple[Expr, ...]
    steps: tuple[int, ...]
    inside: bool = False


@node
class ConcatAttrs(Attrs):
    """The axis along which tensors are joined."""

    axis: int


def _count(start: Expr, stop: Expr, step: int) -> Expr:
    """How many elements a range has; an empty one is recognized only where that is certain."""
    span = stop - start if step > 0 else start - stop
    count = simplify(ceildiv(span, abs(step)))
    known = as_int(count)
    return const(max(known, 0)) if known is not None else count


def _slice_type(attrs: SliceAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    if not len(attrs.starts) == len(attrs.stops) == len(attrs.steps) == x.rank:
        raise fail("slice", f"{x} needs one start, stop and step a dimension")
    if 0 in attrs.steps:
        raise fail("slice", "a step is 0", "use a step of at least 1, or of at most -1")
    return TensorType(x.dtype, tuple(map(_count, attrs.starts, attrs.stops, attrs.steps)))


def _in_bounds(index: Expr, start: Expr, stop: Expr, step: int, size: Expr) -> Expr:
    """What has to be checked so that `index` lies within a dimension of `size`."""
    low, high = (start, stop - 1) if step > 0 else (stop + 1, start)
    above = TRUE if prove(const(0) <= low) else const(0) <= index
    below = TRUE if prove(high < size) else index < size
    return above & below


def _slice(
    b: Builder, attrs: SliceAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]

    def element(*i: Expr) -> Expr:
        index = [simplify(s + e * d) for e, s, d in zip(i, attrs.starts, attrs.steps, strict=True)]
        inside: Expr = TRUE
        for bounds in zip(index, attrs.starts, attrs.stops, attrs.steps, x.shape, strict=True):
            inside = inside if attrs.inside else inside & _in_bounds(*bounds)
        return x.at(*index, when=None if inside is TRUE else inside)

    return b.compute("y", outs[0].shape, element)


def _slice_value(attrs: SliceAttrs, known: Sequence[np.ndarray]) -> np.ndarray | None:
    ranges = []
    for start, stop, step in zip(attrs.starts, attrs.stops, attrs.steps, strict=True):
        first, last = as_int(simplify(start)), as_int(simplify(stop))
        if first is None or last is None:
            return None
        ranges.append(np.arange(first, last, step))
    return known[0][np.ix_(*ranges)] if ranges else known[0]


def _concat_type(attrs: ConcatAttrs, ins: Sequence[TensorType]) -> TensorType:
    if not ins or not ins[0].rank or any(t.rank != ins[0].rank for t in ins):
        raise fail("concat", f"operands {', '.join(map(str, ins))} must have one rank, not 0")
    axis = normalize_axis("concat", attrs.axis, ins[0].rank)
    dims = list(ins[0].shape)
    for other in ins[1:]:
        for d in range(len(dims)):
            joined = dims[d] if d == axis else same_size("concat", dims[d], other.shape[d])
            if joined is None:
                raise fail("concat", f"{ins[0]} and {other} differ in dimension {d}")
            dims[d] = joined
        dims[axis] = simplify(dims[axis] + other.shape[axis])
    return TensorType(same_dtype("concat", ins), tuple(dims))


def _concat(
    b: Builder, attrs: ConcatAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    axis = normalize_axis("concat", attrs.axis, len(outs[0].shape))
    parts = [x for x in ins if x.shape[axis] is not const(0)] or ins[:1]
    offsets: list[Expr] = [const(0)]
    for x in parts:
        offsets.append(simplify(offsets[-1] + x.shape[axis]))

    def element(*i: Expr) -> Expr:
        place = i[axis]

        def load(n: int) -> Expr:
            after = TRUE if n == 0 else offsets[n] <= place
            before = TRUE if n == len(parts) - 1 else place < offsets[n + 1]
            index = (*i[:axis], simplify(place - offsets[n]), *i[axis + 1 :])
            mask = after & before
            return parts[n].at(*index, when=None if mask is TRUE else mask)

        def choose(first: int, last: int) -> Expr:
            """The element if it lies in parts `first` to `last`, by halving."""
            if first == last:
                return load(first)
            half = (first + last + 1) // 2
            return select(place < offsets[half], choose(first, half - 1), choose(half, last))

        return choose(0, len(parts) - 1)

    return b.compute("y", outs[0].shape, element)


OPS = (
    Op(
        "slice",
        _slice_type,
        "injective",
        SliceAttrs,
        te=_slice,
        propagate=_slice_value,
        flops=0,
        doc="Every so many elements of a range of each dimension.",
    ),
    Op(
        "concat",
        _concat_type,
        "injective",
        ConcatAttrs,
        te=_concat,
        propagate=lambda a, known: np.concatenate(known, a.axis),
        flops=0,
        doc="Tensors joined along one axis.",
    ),
    Op(
        "slice_view",
        _slice_type,
        "view",
        SliceAttrs,
        te=_slice,
        propagate=_slice_value,
        flops=0,
        doc="A slice that is read where it lies, not copied.",
    ),
    Op(
        "concat_view",
        _concat_type,
        "view",
        ConcatAttrs,
        te=_concat,
        propagate=lambda a, known: np.concatenate(known, a.axis),
        flops=0,
        doc="Tensors joined along one axis, each computed where it lies in the result.",
    ),
)
