"""Operators whose operands say which elements to take: gather and its variants, one_hot, ...

Indices count from the end where they are negative; `positions.py` says what becomes of those
outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.arith.expr import Expr, as_int, cast, const, minimum, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL, I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.op import Op, fail, normalize_axis
from tilewright.ops.shape.assumptions import assume, same_shape
from tilewright.ops.tensor.manipulation import static_sizes
from tilewright.ops.tensor.positions import check_indices, place_of

ONE = const(1)


@node
class GatherAttrs(Attrs):
    """The axis that the indices count along, and what becomes of those outside."""

    axis: int = 0
    mode: str = "raise"


@node
class GatherNdAttrs(Attrs):
    """How many leading dimensions indices and data share, and what becomes of those outside."""

    batch_dims: int = 0
    mode: str = "raise"


@node
class IndexPositionsAttrs(Attrs):
    """What becomes of indices outside, and whether negative ones count from the end."""

    mode: str = "raise"
    wraps: bool = True


@node
class OneHotAttrs(Attrs):
    """The number of classes, and where the new axis goes."""

    depth: Expr
    axis: int = -1


@node
class ReverseSequenceAttrs(Attrs):
    """The axis that is reversed, and the axis that numbers the sequences."""

    time_axis: int = 0
    batch_axis: int = 1


def _gather_type(attrs: GatherAttrs, ins: Sequence[TensorType]) -> TensorType:
    data, indices = ins
    axis = _axis("gather", attrs.axis, data)
    check_indices("gather", attrs.mode, data, indices, (axis,))
    return TensorType(data.dtype, (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))


def _axis(op: str, axis: int, data: TensorType | Tensor) -> int:
    if not data.shape:
        raise fail(op, "the data is a scalar", "give a rank of 1 or more")
    return normalize_axis(op, axis, len(data.shape))


def _gather(
    b: Builder, attrs: GatherAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    data, indices = ins
    axis = _axis("gather", attrs.axis, data)
    behind = axis + len(indices.shape)
    check = b.check if attrs.mode == "raise" else None

    def element(*i: Expr) -> Expr:
        (place,), when = place_of((indices.at(*i[axis:behind]),), (data.shape[axis],), check)
        return data.at(*i[:axis], place, *i[behind:], when=when)

    return b.compute("y", outs[0].shape, element)


def _gather_value(attrs: GatherAttrs, known: Sequence[np.ndarray]) -> np.ndarray | None:
    size = known[0].shape[attrs.axis]
    places = static_sizes(known[1].reshape(-1))
    if places is None or any(not -size <= p < size for p in places):
        return None
    where = np.array(places, np.int64).reshape(known[1].shape)
    taken = np.empty(np.take(np.zeros(known[0].shape), where, attrs.axis).shape, dtype=object)
    taken[...] = np.take(known[0], where, attrs.axis)
    return taken


def _gather_elements_type(attrs: GatherAttrs, ins: Sequence[TensorType]) -> TensorType:
    data, indices = ins
    axis = _axis("gather_elements", attrs.axis, data)
    check_indices("gather_elements", attrs.mode, data, indices, (axis,))
    check_fits("gather_elements", data, indices, axis)
    return TensorType(data.dtype, indices.shape)


def check_fits(op: str, data: TensorType, indices: TensorType, axis: int) -> None:
    """Raise TypeCheckError if indices reach beyond the data in a dimension other than `axis`."""
    if data.rank != indices.rank:
        raise fail(op, f"data {data} and indices {indices} differ in rank")
    for d, (n, m) in enumerate(zip(data.shape, indices.shape, strict=True)):
        beyond = f"indices {indices} reach beyond data {data} in dimension {d}"
        if d != axis and not assume(simplify(m <= n), f"{op}: {beyond}"):
            raise fail(op, beyond)


def _gather_elements(
    b: Builder, attrs: GatherAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    data, indices = ins
    axis = _axis("gather_elements", attrs.axis, data)
    check = b.check if attrs.mode == "raise" else None

    def element(*i: Expr) -> Expr:
        (place,), when = place_of((indices.at(*i),), (data.shape[axis],), check)
        return data.at(*i[:axis], place, *i[axis + 1 :], when=when)

    return b.compute("y", outs[0].shape, element)


def tuple_length(
    op: str, data: TensorType | Tensor, indices: TensorType | Tensor, batch: int
) -> int:
    """How many dimensions of `data`, after `batch` shared ones, a tuple of `indices` names."""
    length = as_int(indices.shape[-1]) if indices.shape else None
    if length is None or not 0 <= batch < len(indices.shape) or batch + length > len(data.shape):
        raise fail(
            op,
            f"indices of shape [{', '.join(map(str, indices.shape))}] do not address data of shape"
            f" [{', '.join(map(str, data.shape))}]",
            "the last dimension of the indices counts the dimensions that they name",
        )
    return length


def _gather_nd_type(attrs: GatherNdAttrs, ins: Sequence[TensorType]) -> TensorType:
    data, indices = ins
    batch = attrs.batch_dims
    length = tuple_length("gather_nd", data, indices, batch)
    check_indices("gather_nd", attrs.mode, data, indices, range(batch, batch + length))
    if not same_shape("gather_nd", data.shape[:batch], indices.shape[:batch]):
        raise fail("gather_nd", f"{data} and {indices} differ in their first {batch} dimensions")
    return TensorType(data.dtype, (*indices.shape[:-1], *data.shape[batch + length :]))


def _gather_nd(
    b: Builder, attrs: GatherNdAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    data, indices = ins
    batch, outer = attrs.batch_dims, len(indices.shape) - 1
    length = tuple_length("gather_nd", data, indices, batch)
    check = b.check if attrs.mode == "raise" else None

    def element(*i: Expr) -> Expr:
        found = [indices.at(*i[:outer], k) for k in range(length)]
        places, when = place_of(found, data.shape[batch : batch + length], check)
        return data.at(*i[:batch], *places, *i[outer:], when=when)

    return b.compute("y", outs[0].shape, element)


def _index_positions_type(attrs: IndexPositionsAttrs, ins: Sequence[TensorType]) -> TensorType:
    indices, sizes = ins
    check_indices("index_positions", attrs.mode, indices, indices, ())
    fits = sizes.rank == indices.rank and all(
        n is ONE or n == m for n, m in zip(sizes.shape, indices.shape, strict=True)
    )
    if sizes.dtype != I64 or not fits:
        raise fail("index_positions", f"sizes {sizes} do not fit indices {indices}")
    return TensorType(I64, indices.shape)


def _index_positions(
    b: Builder, attrs: IndexPositionsAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    indices, sizes = ins
    check = b.check if attrs.mode == "raise" else None

    def element(*i: Expr) -> Expr:
        size = sizes.at(*(const(0) if n is ONE else k for n, k in zip(sizes.shape, i, strict=True)))
        (place,), _ = place_of((indices.at(*i),), (size,), check, attrs.wraps)
        return place

    return b.compute("y", outs[0].shape, element)


def _one_hot_axis(attrs: OneHotAttrs, indices: TensorType | Tensor) -> int:
    return normalize_axis("one_hot", attrs.axis, len(indices.shape) + 1)


def _one_hot_type(attrs: OneHotAttrs, ins: Sequence[TensorType]) -> TensorType:
    indices, values = ins
    if indices.dtype == BOOL or values.static_shape != (2,):
        raise fail("one_hot", f"indices {indices}, values {values}", "values are [off, on]")
    axis = _one_hot_axis(attrs, indices)
    depth = simplify(attrs.depth)
    return TensorType(values.dtype, (*indices.shape[:axis], depth, *indices.shape[axis:]))


def _one_hot(
    b: Builder, attrs: OneHotAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    indices, values = ins
    axis = _one_hot_axis(attrs, indices)

    def element(*i: Expr) -> Expr:
        place = cast(I64, indices.at(*i[:axis], *i[axis + 1 :]))
        # An index outside has no class at all, so it is not clamped.
        place = select(place < 0, place + attrs.depth, place)
        return select(place.eq(i[axis]), values.at(1), values.at(0))

    return b.compute("y", outs[0].shape, element)


def _reverse_sequence_axes(attrs: ReverseSequenceAttrs, shape: Shape) -> tuple[int, int]:
    time, batch = (
        normalize_axis("reverse_sequence", a, len(shape))
        for a in (attrs.time_axis, attrs.batch_axis)
    )
    return time, batch


def _reverse_sequence_type(attrs: ReverseSequenceAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, lengths = ins
    if x.rank < 2 or not lengths.dtype.is_integer:
        raise fail("reverse_sequence", f"operands {x} and {lengths}", "lengths must be integers")
    time, batch = _reverse_sequence_axes(attrs, x.shape)
    if time == batch or not same_shape("reverse_sequence", lengths.shape, (x.shape[batch],)):
        raise fail("reverse_sequence", f"{lengths} is not one length a sequence of {x}")
    return x


def _reverse_sequence(
    b: Builder, attrs: ReverseSequenceAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, lengths = ins
    time, batch = _reverse_sequence_axes(attrs, x.shape)
    size = x.shape[time]

    def element(*i: Expr) -> Expr:
        # The position of a sequence's last element, -1 if it has none, is what can lie outside.
        last = b.check(cast(I64, lengths.at(i[batch])) - 1, const(-1), size)
        end = minimum(last, simplify(size - 1))
        place = select(i[time] <= end, end - i[time], i[time])
        # The position of an only element needs no length: the mask keeps the check alive.
        when = last < size if as_int(size) == 1 else None
        return x.at(*i[:time], place, *i[time + 1 :], when=when)

    return b.compute("y", x.shape, element)


def checks_one(attrs: Any, ins: Sequence[TensorType]) -> int:
    """One index of an element is checked, unless the mode is `clip`."""
    return int(attrs.mode == "raise")


def _checks_tuple(attrs: GatherNdAttrs, ins: Sequence[TensorType]) -> int:
    return checks_one(attrs, ins) * tuple_length("gather_nd", ins[0], ins[1], attrs.batch_dims)


OPS = (
    Op(
        "gather",
        _gather_type,
        "injective",
        GatherAttrs,
        te=_gather,
        propagate=_gather_value,
        flops=0,
        checks=checks_one,
        doc="Whole slices along one axis, chosen by the indices.",
    ),
    Op(
        "gather_elements",
        _gather_elements_type,
        "injective",
        GatherAttrs,
        te=_gather_elements,
        flops=0,
        checks=checks_one,
        doc="Single elements, each with its own index along one axis.",
    ),
    Op(
        "gather_nd",
        _gather_nd_type,
        "injective",
        GatherNdAttrs,
        te=_gather_nd,
        flops=0,
        checks=_checks_tuple,
        doc="Slices addressed by tuples of indices.",
    ),
    Op(
        "index_positions",
        _index_positions_type,
        "injective",
        IndexPositionsAttrs,
        te=_index_positions,
        flops=3,
        checks=checks_one,
        doc="Indices counted from the front and clamped, each in a dimension of its own size.",
    ),
    Op(
        "one_hot",
        _one_hot_type,
        "injective",
        OneHotAttrs,
        te=_one_hot,
        doc="The second of two values at the index along a new axis, the first elsewhere.",
    ),
    Op(
        "reverse_sequence",
        _reverse_sequence_type,
        "injective",
        ReverseSequenceAttrs,
        te=_reverse_sequence,
        checks=lambda attrs, ins: 1,
        flops=0,
        doc="The first elements of each sequence in reverse order, each with its own length.",
    ),
)
