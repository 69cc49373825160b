"""linear_recurrence: `y[i] = a[i] * y[i - 1] + b[i]` along an axis, where `y` begins as `b`.

    y = linear_recurrence(b, a) {axis=1}

With `reverse` it runs from the end: `y[i] = a[i] * y[i + 1] + b[i]`. The first element of `a` on
the way meets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load, Var, cast, const, select
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import For, Func, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import widen
from tilewright.ops.elementwise.define import check_dtype, numbers
from tilewright.ops.loop_builder import parameters, spatial_block
from tilewright.ops.op import Op, fail, normalize_axis, same_dtype
from tilewright.ops.shape.assumptions import same_shape


@node
class RecurrenceAttrs(Attrs):
    """The axis; `reverse` starts at the end."""

    axis: int
    reverse: bool = False


def _type(attrs: RecurrenceAttrs, ins: Sequence[TensorType]) -> TensorType:
    b, a = ins
    check_dtype("linear_recurrence", numbers, same_dtype("linear_recurrence", ins))
    if not same_shape("linear_recurrence", b.shape, a.shape):
        raise fail("linear_recurrence", f"{b} and {a} differ in shape")
    if not b.rank:
        raise fail("linear_recurrence", "a scalar has no axis")
    normalize_axis("linear_recurrence", attrs.axis, b.rank)
    return b


def _loops(attrs: RecurrenceAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    t = outs[0]
    axis = normalize_axis("linear_recurrence", attrs.axis, t.rank)
    k = Var("at.k")
    place = simplify(t.shape[axis] - 1 - k) if attrs.reverse else k
    before = simplify(place + 1 if attrs.reverse else place - 1)

    def line(*rest: Expr) -> Stmt:
        def at(position: Expr) -> tuple[Expr, ...]:
            return (*rest[:axis], position, *rest[axis:])

        started = const(0) < k
        factor = widen(Load("x1", at(place), t.dtype))
        new = widen(Load("x0", at(place), t.dtype))
        run = factor * widen(Load("y0", at(before), t.dtype, started)) + new
        step = Store("y0", at(place), cast(t.dtype, select(started, run, new)))
        return For("at.k", t.shape[axis], "serial", step)

    buffers = parameters(ins, outs)
    others = (*t.shape[:axis], *t.shape[axis + 1 :])
    block = spatial_block("linear_recurrence", others, line, buffers)
    return Func("linear_recurrence", tuple(buffers.values()), ("y0",), block)


OPS = (
    Op(
        "linear_recurrence",
        _type,
        "opaque",
        RecurrenceAttrs,
        loops=_loops,
        flops=2,
        doc="`y[i] = a[i] * y[i - 1] + b[i]` along an axis.",
    ),
)
