"""Where one tensor lies inside another: the geometry of `concat_view` and `slice_view`.

    %2 = concat_view(%0, %1) {axis=1}    %0 and %1 are computed into the columns of %2
    %3 = slice_view(%2) {...}            %3 is read where it lies

A part has the dimensions of its host, each from some index on. Its elements are those of the host's
row-major layout, so it is described by where it starts and by the host's shape, its *room*.
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
    """`value` lies in the bytes of `host`, from the index `starts` on, under this shape.

    Without `starts` it has the very bytes of the host.
    """

    value: str
    host: str
    shape: Shape
    starts: Shape | None = None


def subviews(n: Node, type_of: Callable[[str], Type]) -> Iterator[Subview]:
    """What a view says about where values lie."""
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


def is_contiguous(shape: Shape, room: Shape) -> bool:
    """Whether a tensor of `shape` laid out by `room` has no gaps between its elements."""
    first = next((d for d, size in enumerate(shape) if size is not const(1)), len(shape))
    pairs = list(zip(shape, room, strict=True))
    return all(size is wide for size, wide in pairs[first + 1 :])


def distance(starts: Shape, room: Shape) -> Expr:
    """The elements from the first one of `room` to the one at `starts`."""
    total: Expr = const(0)
    for d, start in enumerate(starts):
        total = total + start * product(room[d + 1 :])
    return simplify(total)


def room_without_units(shape: Shape, room: Shape) -> Shape:
    """The room of the dimensions longer than 1: each takes in the room of what is left out before.

    What lies behind the last of them must have no room: the last elements lie side by side.
    """
    kept: list[Expr] = []
    skipped: Expr = const(1)
    for size, wide in zip(shape, room, strict=True):
        skipped = simplify(skipped * wide)
        if size is not const(1):
            kept.append(skipped)
            skipped = const(1)
    assert skipped is const(1), f"{shape} in {room} has gaps between single elements"
    return tuple(kept)


def differ_in_units(a: Shape, b: Shape) -> bool:
    """Whether two shapes are the same but for dimensions of size 1."""
    one = const(1)
    return [d for d in a if d is not one] == [d for d in b if d is not one]


def room_as(room: Shape, old: Shape, new: Shape) -> Shape:
    """The room of a tensor of shape `old` as one of shape `new`, which differs in units only."""
    assert differ_in_units(old, new), f"{old} in {room} has gaps, and is no {new}"
    kept = iter(room_without_units(old, room))
    return tuple(const(1) if size is const(1) else next(kept) for size in new)
