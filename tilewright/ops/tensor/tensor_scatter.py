"""tensor_scatter: new elements written into a cache, for each sequence at its own position."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, cast, const, select
from tilewright.core.dtypes import I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.op import Op, fail, normalize_axis, same_dtype
from tilewright.ops.shape.assumptions import same_shape, same_size


@node
class TensorScatterAttrs(Attrs):
    """The axis written along; `circular` goes on at the start of the cache behind its end."""

    axis: int = -2
    circular: bool = False


def _type(attrs: TensorScatterAttrs, ins: Sequence[TensorType | None]) -> TensorType:
    cache, update, starts = (*ins, None)[:3]
    assert cache is not None
    assert update is not None
    same_dtype("tensor_scatter", (cache, update))
    axis = normalize_axis("tensor_scatter", attrs.axis, cache.rank)
    if axis == 0 or cache.rank != update.rank:
        raise fail("tensor_scatter", f"{update} is not written along axis {axis} of {cache}")
    others = [(*t.shape[:axis], *t.shape[axis + 1 :]) for t in (cache, update)]
    if not same_shape("tensor_scatter", *others):
        raise fail("tensor_scatter", f"{update} does not fit {cache} beside axis {axis}")
    if starts is not None and (starts.rank != 1 or not starts.dtype.is_integer):
        raise fail("tensor_scatter", f"{starts} is not one start a sequence")
    if starts is not None and same_size("tensor_scatter", starts.shape[0], cache.shape[0]) is None:
        raise fail("tensor_scatter", f"{starts} is not one start a sequence of {cache}")
    return cache


def _tensor_scatter(
    b: Builder,
    attrs: TensorScatterAttrs,
    ins: Sequence[Tensor | None],
    outs: Sequence[TensorType],
) -> Tensor:
    cache, update, starts = (*ins, None)[:3]
    assert cache is not None
    assert update is not None
    axis = normalize_axis("tensor_scatter", attrs.axis, len(cache.shape))
    length, count = cache.shape[axis], update.shape[axis]

    def first(start: Expr) -> Expr:
        """Where a sequence is written from: behind it the cache has room for all of it."""
        return b.check(start, const(0), length if attrs.circular else length - count + 1)

    def element(*i: Expr) -> Expr:
        start = const(0) if starts is None else first(cast(I64, starts.at(i[0])))
        place = i[axis] - start
        if attrs.circular:
            place = place % length
        inside = (const(0) <= place) & (place < count)
        new = update.at(*i[:axis], place, *i[axis + 1 :], when=inside)
        return select(inside, new, cache.at(*i))

    return b.compute("y", outs[0].shape, element)


OPS = (
    Op(
        "tensor_scatter",
        _type,
        "injective",
        TensorScatterAttrs,
        te=_tensor_scatter,
        flops=0,
        checks=lambda attrs, ins: int(len(ins) > 2 and ins[2] is not None),
        doc="A cache with new elements from a start on, one start a sequence.",
    ),
)
