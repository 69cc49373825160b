"""The positions of the true elements of a row, and how many there are.

%positions: i64[N], %count: i64[1] = flatnonzero(%mask)
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Load, Var, cast, const
from tilewright.core.dtypes import BOOL, I64
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import For, Func, Seq, Stmt, Store
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.loop_builder import parameters, spatial_block
from tilewright.ops.op import Op, fail


def _flatnonzero_type(_: Attrs, ins: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
    if ins[0].dtype != BOOL or ins[0].rank != 1:
        raise fail("flatnonzero", f"{ins[0]} is not a row of truth values")
    return TensorType(I64, ins[0].shape), tensor(I64, 1)


def _flatnonzero(_: Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
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
        "flatnonzero",
        _flatnonzero_type,
        "opaque",
        loops=_flatnonzero,
        doc="Where a row is true, and how often; beyond the last position anything may stand.",
    ),
)
