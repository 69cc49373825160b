"""The greatest or least element so far along an axis, and where it stands.

    %values: f32[4, n], %places: i64[4, n] = cumulative_extreme(%x) {axis=1, largest=true}

Of equal elements it is the last one; from the first NaN on it is the last NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load, Var, call, const, select
from tilewright.core.dtypes import I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import For, Func, Seq, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.define import check_dtype, numbers
from tilewright.ops.loop_builder import parameters, spatial_block
from tilewright.ops.op import Op, fail, normalize_axis

NAME = "cumulative_extreme"


@node
class CumulativeExtremeAttrs(Attrs):
    """The axis, and whether it is the greatest element that is kept."""

    axis: int
    largest: bool = True


def _type(
    attrs: CumulativeExtremeAttrs, ins: Sequence[TensorType]
) -> tuple[TensorType, TensorType]:
    x = ins[0]
    check_dtype(NAME, numbers, x.dtype)
    if x.rank == 0:
        raise fail(NAME, "a scalar has no axis")
    normalize_axis(NAME, attrs.axis, x.rank)
    return x, TensorType(I64, x.shape)


def _loops(
    attrs: CumulativeExtremeAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    x = ins[0]
    axis, k = normalize_axis(NAME, attrs.axis, x.rank), Var("at.k")
    has_previous = const(0) < k

    def row(*rest: Expr) -> Stmt:
        def at(place: Expr) -> tuple[Expr, ...]:
            return (*rest[:axis], place, *rest[axis:])

        new = Load("x0", at(k), x.dtype)
        old = Load("y0", at(k - 1), x.dtype, has_previous)
        place = Load("y1", at(k - 1), I64, has_previous)
        taken = k.eq(0) | (old <= new if attrs.largest else new <= old)
        if x.dtype.is_float:
            taken = taken | call("isnan", new)
        stores = (
            Store("y1", at(k), select(taken, k, place)),
            Store("y0", at(k), select(taken, new, old)),
        )
        return For("at.k", x.shape[axis], "serial", Seq(stores))

    others = (*x.shape[:axis], *x.shape[axis + 1 :])
    buffers = parameters(ins, outs)
    body = spatial_block(NAME, others, row, buffers)
    return Func(NAME, tuple(buffers.values()), ("y0", "y1"), body)


OPS = (
    Op(
        NAME,
        _type,
        "opaque",
        CumulativeExtremeAttrs,
        loops=_loops,
        flops=lambda attrs, ins, outs: ins[0].elements,
        doc="the greatest or least element so far along an axis, and where it stands",
    ),
)
