from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Var, as_int, const
from tilewright.core.dtypes import F32
from tilewright.ir.types import Shape, tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.subviews import (
    Subview,
    differ_in_units,
    is_contiguous,
    linear_offset,
    parent_shape_as,
    parent_without_units,
    subviews,
)

N = Var("N")


def dims(*sizes: int) -> Shape:
    return tuple(map(const, sizes))


def strides(shape: tuple[int, ...], parent: Shape) -> list[int]:
    """Elements from one index to the next along the dimensions that are longer than 1."""
    sizes = [as_int(d) or 0 for d in parent]
    return [int(np.prod(sizes[d + 1 :])) for d, size in enumerate(shape) if size != 1]


def test_where_parts_lie() -> None:
    g = GraphBuilder("f")
    x, y = g.input("x", tensor(F32, 2, N)), g.input("y", tensor(F32, 2, 5))
    joined = g.add("concat_view", x, y, attrs=make_attrs("concat_view", {"axis": -1}))
    cut = {"starts": (1, 2), "stops": (2, 4), "steps": (1, 1)}
    part = g.add("slice_view", joined, attrs=make_attrs("slice_view", cut))
    flat = g.add("reshape", part, attrs=make_attrs("reshape", {"shape": (2,)}))
    nodes = {n.op: n for n in g.graph(flat).nodes}
    assert list(subviews(nodes["concat_view"], g.type)) == [
        Subview(x, joined, (const(2), N), dims(0, 0)),
        Subview(y, joined, dims(2, 5), (const(0), N)),
    ]
    assert list(subviews(nodes["slice_view"], g.type)) == [
        Subview(part, joined, dims(1, 2), dims(1, 2))
    ]
    assert list(subviews(nodes["reshape"], g.type)) == [Subview(flat, part, dims(2))]


def test_gaps() -> None:
    assert is_contiguous(dims(2, 3, 4), dims(5, 3, 4))
    assert is_contiguous(dims(1, 3, 4), dims(5, 7, 4))
    assert is_contiguous((), ())
    assert not is_contiguous(dims(2, 3, 4), dims(2, 3, 5))
    assert not is_contiguous(dims(2, 1, 4), dims(2, 3, 4))
    assert not is_contiguous((const(2), N), dims(2, 3))
    assert as_int(linear_offset(dims(1, 2, 3), dims(9, 5, 4))) == 20 + 8 + 3


@for_each(
    ("old", "parent", "new"),
    [
        ((2, 3, 4), (2, 3, 8), (2, 3, 4)),
        ((2, 1, 4), (2, 3, 4), (2, 4)),
        ((2, 1, 1, 4), (2, 3, 5, 6), (1, 2, 1, 4, 1)),
        ((1, 4), (7, 9), (4,)),
    ],
)
def test_dimensions_of_one_come_and_go(
    old: tuple[int, ...], parent: tuple[int, ...], new: tuple[int, ...]
) -> None:
    assert differ_in_units(dims(*old), dims(*new))
    moved = parent_shape_as(dims(*parent), dims(*old), dims(*new))
    assert strides(new, moved) == strides(old, dims(*parent))
    kept = tuple(n for n in old if n != 1)
    long = parent_without_units(dims(*old), dims(*parent))
    assert strides(kept, long) == strides(old, dims(*parent))


def test_other_shapes_are_refused() -> None:
    assert not differ_in_units(dims(2, 3), dims(3, 2))
    with pytest.raises(AssertionError, match="gaps"):
        parent_shape_as(dims(2, 8), dims(2, 4), dims(8))
    with pytest.raises(AssertionError, match="single elements"):
        parent_without_units(dims(4, 1), dims(4, 2))
