"""Subviews, tensors inside other tensors: the geometry of `concat_view` and `slice_view`.

    %2 = concat_view(%0, %1) {axis=1}    %0 and %1 are computed into the columns of %2
    %3 = slice_view(%2) {...}            %3 is read in place

A subview has the rank of its parent, and starts at some index of each dimension. Its strides are
those of the parent's row-major layout, so an offset and the parent's shape describe it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilewright.arith.expr import Expr, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Node
from tilewright.ir.types import Shape, TensorType, Type
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs


@node
class Subview:
    """`value` is a view of `parent` under this shape, from the index `starts` on.

    Without `starts` it has all bytes of the parent.
    """

    value: str
    parent: str
    shape: Shape
    starts: Shape | None = None


def subviews(n: Node, type_of: Callable[[str], Type]) -> Iterator[Subview]:
    """The subviews that a view operator defines."""
    if isinstance(n.attrs, ConcatAttrs):
        axis = normalize_axis(n.op, n.attrs.axis, n.type.rank)
        place: Expr = const(0)
        for name in n.inputs:
            shape = _shape(type_of(name))
            starts = (place if d == axis else const(0) for d in range(len(shape)))
            yield Subview(name, n.name, shape, tuple(starts))
            place = simplify(place + shape[axis])
    elif isinstance(n.attrs, SliceAttrs):
        yield Subview(n.name, n.inputs[0], n.type.shape, n.attrs.starts)
    else:
        yield Subview(n.name, n.inputs[0], n.type.shape)


def _shape(t: Type) -> Shape:
    assert isinstance(t, TensorType)
    return t.shape


def is_contiguous(shape: Shape, parent_shape: Shape) -> bool:
    """Whether a view of `shape` has no gaps between its elements."""
    first = next((d for d, size in enumerate(shape) if size is not const(1)), len(shape))
    pairs = list(zip(shape, parent_shape, strict=True))
    return all(size is wide for size, wide in pairs[first + 1 :])


def linear_offset(starts: Shape, parent_shape: Shape) -> Expr:
    """The number of elements from the first one of the parent to the one at `starts`."""
    total: Expr = const(0)
    for d, start in enumerate(starts):
        total = total + start * product(parent_shape[d + 1 :])
    return simplify(total)


def parent_without_units(shape: Shape, parent_shape: Shape) -> Shape:
    """The parent's shape with only the dimensions in which `shape` is longer than 1.

    Each takes in the extents of those left out before it. The parent may have no others after the
    last: the innermost elements must be contiguous.
    """
    kept: list[Expr] = []
    skipped: Expr = const(1)
    for size, wide in zip(shape, parent_shape, strict=True):
        skipped = simplify(skipped * wide)
        if size is not const(1):
            kept.append(skipped)
            skipped = const(1)
    assert skipped is const(1), f"{shape} in {parent_shape} has gaps between single elements"
    return tuple(kept)


def differ_in_units(a: Shape, b: Shape) -> bool:
    """Whether two shapes are the same but for dimensions of size 1."""
    one = const(1)
    return [d for d in a if d is not one] == [d for d in b if d is not one]


def parent_shape_as(parent_shape: Shape, old: Shape, new: Shape) -> Shape:
    """The parent's shape where a view of shape `old` is read as `new`, equal but for units."""
    assert differ_in_units(old, new), f"{old} in {parent_shape} has gaps, and is no {new}"
    kept = iter(parent_without_units(old, parent_shape))
    return tuple(const(1) if size is const(1) else next(kept) for size in new)
