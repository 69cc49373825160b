"""Sizes that a model computes: a number in memory becomes the value of a named size.

    %positions: i64[N], %count: i64[1] = flatnonzero(%mask)
    %known: i64[1] = bind_dim(%count) {name="L", limit=N}
    %found: i64[L] = slice(%positions) {stops=[L]}

Types of what comes after may mention the size. Memory is planned for its limit, so that kernels
before and after lie in one native function.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load, Var, as_int, cast, const
from tilewright.core.dtypes import BOOL, I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import For, Func, Seq, Stmt, Store
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.op import Op, fail
from tilewright.ops.tensor.scatter import parameters, spatial_block


@node
class BindDimAttrs(Attrs):
    """The name of the size, and the most that it can be; it is never negative."""

    name: str
    limit: Expr


def _learn_type(_: BindDimAttrs, ins: Sequence[TensorType]) -> TensorType:
    if ins[0].dtype != I64 or as_int(ins[0].elements) != 1:
        raise fail("bind_dim", f"{ins[0]} is not one number", "use an i64 of one element")
    return ins[0]


def _itself(b: Builder, _: Attrs, ins: Sequence[Tensor], outs: Sequence[TensorType]) -> Tensor:
    return b.compute("y", outs[0].shape, lambda *i: ins[0].at(*i))


def _positions_type(_: Attrs, ins: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
    if ins[0].dtype != BOOL or ins[0].rank != 1:
        raise fail("flatnonzero", f"{ins[0]} is not a row of truth values")
    return TensorType(I64, ins[0].shape), tensor(I64, 1)


def _positions(_: Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    """Each position is written where the next one belongs, which moves on if it is one."""
    k, zero = Var("at.k"), const(0)
    count = Load("y1", (zero,), I64)
    step = Seq(
        (
            Store("y0", (count,), k),
            Store("y1", (zero,), count + cast(I64, Load("x0", (k,), BOOL))),
        )
    )

    def row() -> Stmt:
        start = Store("y1", (zero,), zero)
        return Seq((start, For("at.k", ins[0].shape[0], "serial", step)))

    buffers = parameters(ins, outs)
    body = spatial_block("flatnonzero", (), row, buffers)
    return Func("flatnonzero", tuple(buffers.values()), ("y0", "y1"), body)


OPS = (
    Op(
        "bind_dim",
        _learn_type,
        "opaque",
        BindDimAttrs,
        te=_itself,
        flops=0,
        doc="The number itself, which is from there on the value of a named size.",
    ),
    Op(
        "flatnonzero",
        _positions_type,
        "opaque",
        loops=_positions,
        doc="Where a row is true, and how often; beyond the last position anything may stand.",
    ),
)
