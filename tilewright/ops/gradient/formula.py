"""Words that gradient rules are written in: sums over axes, transposes, zeros, scattered sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.arith.expr import Expr, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, I64, DType
from tilewright.ir.types import Shape
from tilewright.ops.elementwise.arithmetic import ModAttrs
from tilewright.ops.op import GraphOps, normalize_axis
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.creation import DimsAttrs, FullAttrs, RangeAttrs
from tilewright.ops.tensor.manipulation import ExpandAttrs, TransposeAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.scatter import ScatterElementsAttrs, ScatterNdAttrs
from tilewright.ops.tensor.slicing import SliceAttrs
from tilewright.ops.traced_value import Value

Rule = Callable[..., Sequence[Value | None]]
Parts = Callable[..., "str | tuple[str, ...]"]


def value(g: GraphOps, name: str) -> Value:
    """A value of a graph; `parts` get names."""
    return Value(g, name)


def reduced(op: str, x: Value, axes: Sequence[int], keepdims: bool = True) -> Value:
    """A reduction over axes; over none, the value itself."""
    if not axes:
        return x
    return x.apply(f"reduce_{op}", attrs=ReduceAttrs(tuple(axes), keepdims))


def total(x: Value, axes: Sequence[int], keepdims: bool = True) -> Value:
    """The sum over axes."""
    return reduced("sum", x, axes, keepdims)


def full(like: Value, shape: Shape, number: float, dtype: DType | None = None) -> Value:
    """One number everywhere, of the element type of a value."""
    attrs = FullAttrs(shape, number, dtype or like.dtype)
    return like.called(like.g.add("full", attrs=attrs))


def zeros_like(x: Value) -> Value:
    """Zeros in the shape and type of a value."""
    return full(x, x.shape, 0.0)


def count_up(like: Value, count: Expr) -> Value:
    """The numbers 0, 1, ... as i64."""
    attrs = RangeAttrs(const(0), const(1), count)
    return like.called(like.g.add("range", attrs=attrs))


def transpose(x: Value, perm: Sequence[int]) -> Value:
    """The dimensions in another order; itself if it is the same."""
    if tuple(perm) == tuple(range(len(perm))):
        return x
    return x.apply("transpose", attrs=TransposeAttrs(tuple(perm)))


def matrix_transpose(x: Value) -> Value:
    """The last two dimensions exchanged."""
    rank = len(x.shape)
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def expand(x: Value, shape: Shape) -> Value:
    """The value broadcast to a shape; itself where it has it."""
    return x if x.shape == shape else x.apply("expand", attrs=ExpandAttrs(shape))


def flattened(x: Value, start: int, stop: int) -> Value:
    """Dimensions `start` to `stop` as one."""
    shape = x.shape
    return x.reshape((*shape[:start], size_of(shape[start:stop]), *shape[stop:]))


def size_of(shape: Shape) -> Expr:
    """How many elements a tensor of a shape has."""
    return simplify(product(shape))


def modulo(x: Value, size: Expr) -> Value:
    """The remainder of whole numbers by a size."""
    by = x.called(x.g.add("dims", attrs=DimsAttrs((simplify(size),), ())))
    return x.apply("mod", by, attrs=ModAttrs())


def wide(x: Value) -> Value:
    """Floats of fewer than 32 bits as f32, in which rows are summed; others as they are."""
    return x.cast(F32) if x.dtype.is_float and x.dtype.bits < F32.bits else x


def constant(x: Value, data: np.ndarray) -> Value:
    """A constant beside a value."""
    return x.called(x.g.constant(data))


def axes_of(op: str, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, in order; a scalar has none."""
    return tuple(sorted(normalize_axis(op, a, rank) for a in axes)) if rank else ()


def kept(x: Value, axes: Sequence[int], shape: Shape) -> Value:
    """What a reduction of a tensor of `shape` gave, with the axes it was over as ones."""
    return x.reshape(tuple(const(1) if i in axes else d for i, d in enumerate(shape)))


def scattered(like: Value, axis: int, indices: Value, updates: Value, mode: str) -> Value:
    """Zeros like a value, to which elements are added at their indices along an axis."""
    attrs = ScatterElementsAttrs(axis, "add", mode)
    return zeros_like(like).apply("scatter_elements", indices, updates, attrs=attrs)


def scattered_slices(zeros: Value, tuples: Value, updates: Value, mode: str = "raise") -> Value:
    """Zeros, to which slices are added at the places that tuples of indices name."""
    return zeros.apply("scatter_nd", tuples, updates, attrs=ScatterNdAttrs("add", mode))


def part(x: Value, axis: int, start: Expr | int, stop: Expr | int, step: int = 1) -> Value:
    """Elements `start` to `stop` of a dimension, which has them; every `step`-th."""
    rank = len(x.shape)
    starts = tuple(const(0) + start if d == axis else const(0) for d in range(rank))
    stops = tuple(const(0) + stop if d == axis else n for d, n in enumerate(x.shape))
    steps = tuple(step if d == axis else 1 for d in range(rank))
    attrs = SliceAttrs(starts, tuple(map(simplify, stops)), steps, inside=True)
    return x.apply("slice", attrs=attrs)


def padded(x: Value, before: Sequence[Expr], after: Sequence[Expr]) -> Value:
    """Zeros added, or where an amount is negative elements taken away; itself if it is all 0."""
    front, back = (tuple(map(simplify, side)) for side in (before, after))
    if all(n is const(0) for n in (*front, *back)):
        return x
    return x.apply("pad", attrs=PadAttrs(front, back))


def shifted(x: Value, axis: int, ahead: bool) -> Value:
    """Each element where its neighbour is: the next one's place if `ahead`; a 0 comes in."""
    rank = len(x.shape)
    step = [1 if d == axis % rank else 0 for d in range(rank)]
    front = tuple(const(n if ahead else -n) for n in step)
    return padded(x, front, tuple(simplify(const(0) - n) for n in front))


def add_rows(rows: Value, axis: int, size: Expr, places: Value, mode: str) -> Value:
    """Slices along an axis added up into `size` of them, each in the place given for it."""
    rank = len(rows.shape)
    front = transpose(rows, (axis, *(d for d in range(rank) if d != axis)))
    zeros = full(rows, (size, *front.shape[1:]), 0.0)
    tuples = places.reshape((*places.shape, const(1)))
    found = scattered_slices(zeros, tuples, front, mode)
    return transpose(found, (*range(1, axis + 1), 0, *range(axis + 1, rank)))


def as_index(x: Value) -> Value:
    """Indices as i64."""
    return x.cast(I64)
