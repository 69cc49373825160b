"""Operators without data operands: constants of a shape, ranges, diagonals, sizes as a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tilewright.arith.expr import Expr, as_int, cast, const, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL, I64, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.op import Op, fail
from tilewright.ops.tensor.manipulation import static_sizes

# Known values are tracked for small tensors only; larger ones are not worth computing.
MAX_TRACKED_ELEMENTS = 256


@node
class FullAttrs(Attrs):
    """The shape, the element that fills it, and its type."""

    shape: tuple[Expr, ...]
    value: float | int | bool
    dtype: DType


@node
class RangeAttrs(Attrs):
    """`count` integers from `start` in steps of `delta`."""

    start: Expr
    delta: Expr
    count: Expr
    dtype: DType = I64


@node
class EyeAttrs(Attrs):
    """The shape of a matrix, which of its diagonals has ones, and the type of the elements."""

    shape: tuple[Expr, ...]
    k: int
    dtype: DType


@node
class DimsAttrs(Attrs):
    """Index expressions in row-major order, and the shape of the tensor that they fill."""

    values: tuple[Expr, ...]
    shape: tuple[int, ...]


def _full_type(attrs: FullAttrs, _: Sequence[TensorType]) -> TensorType:
    return TensorType(attrs.dtype, tuple(simplify(d) for d in attrs.shape))


def _full(b: Builder, attrs: FullAttrs, _: Sequence[Tensor], outs: Sequence[TensorType]) -> Tensor:
    return b.compute("y", outs[0].shape, lambda *i: const(attrs.value, attrs.dtype))


def _full_value(attrs: FullAttrs, _: Sequence[np.ndarray]) -> np.ndarray | None:
    shape = static_sizes(attrs.shape)
    if shape is None or prod(shape) > MAX_TRACKED_ELEMENTS or attrs.dtype.is_float:
        return None
    return np.full(shape, const(attrs.value, BOOL if attrs.dtype == BOOL else I64), object)


def _range_type(attrs: RangeAttrs, _: Sequence[TensorType]) -> TensorType:
    if not attrs.dtype.is_integer:
        raise fail("range", f"a range of {attrs.dtype}", "use an integer type and cast it")
    return TensorType(attrs.dtype, (simplify(attrs.count),))


def _range(
    b: Builder, attrs: RangeAttrs, _: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    def element(i: Expr) -> Expr:
        return cast(attrs.dtype, simplify(attrs.start + i * attrs.delta))

    return b.compute("y", outs[0].shape, element)


def _range_value(attrs: RangeAttrs, _: Sequence[np.ndarray]) -> np.ndarray | None:
    count = as_int(simplify(attrs.count))
    if count is None or count > MAX_TRACKED_ELEMENTS:
        return None
    items = np.empty(count, dtype=object)
    items[:] = [simplify(attrs.start + attrs.delta * i) for i in range(count)]
    return items


def _eye_type(attrs: EyeAttrs, _: Sequence[TensorType]) -> TensorType:
    if len(attrs.shape) != 2:
        raise fail("eye_like", f"a shape of rank {len(attrs.shape)}", "give a rank of 2")
    return TensorType(attrs.dtype, attrs.shape)


def _eye(b: Builder, attrs: EyeAttrs, _: Sequence[Tensor], outs: Sequence[TensorType]) -> Tensor:
    one, zero = const(1, attrs.dtype), const(0, attrs.dtype)
    return b.compute(
        "y", outs[0].shape, lambda i, j: select(simplify(i + attrs.k).eq(j), one, zero)
    )


def _dims_type(attrs: DimsAttrs, _: Sequence[TensorType]) -> TensorType:
    if prod(attrs.shape) != len(attrs.values):
        raise fail("dims", f"{len(attrs.values)} values for the shape {attrs.shape}")
    return TensorType(I64, tuple(const(d) for d in attrs.shape))


def _dims(b: Builder, attrs: DimsAttrs, _: Sequence[Tensor], outs: Sequence[TensorType]) -> Tensor:
    def element(*i: Expr) -> Expr:
        place: Expr = const(0)
        for e, size in zip(i, attrs.shape, strict=True):
            place = place * size + e
        result: Expr = attrs.values[-1] if attrs.values else const(0)
        for n, value in reversed(list(enumerate(attrs.values[:-1]))):
            result = select(place.eq(n), value, result)
        return result

    return b.compute("y", outs[0].shape, element)


def _dims_value(attrs: DimsAttrs, _: Sequence[np.ndarray]) -> np.ndarray:
    items = np.empty(len(attrs.values), dtype=object)
    items[:] = [simplify(v) for v in attrs.values]
    return items.reshape(attrs.shape)


OPS = (
    Op(
        "full",
        _full_type,
        "injective",
        FullAttrs,
        te=_full,
        propagate=_full_value,
        flops=0,
        doc="One value everywhere.",
    ),
    Op(
        "range",
        _range_type,
        "injective",
        RangeAttrs,
        te=_range,
        propagate=_range_value,
        doc="Integers at equal distances.",
    ),
    Op(
        "eye_like",
        _eye_type,
        "injective",
        EyeAttrs,
        te=_eye,
        doc="Ones on a diagonal, zeros elsewhere.",
    ),
    Op(
        "dims",
        _dims_type,
        "injective",
        DimsAttrs,
        te=_dims,
        propagate=_dims_value,
        flops=0,
        doc="Sizes, and what is computed of sizes, as a tensor.",
    ),
)
