"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tilewright.arith.expr import Expr, Load, Var, binary, const, select
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Block, Buffer, For, Func, Iter, Region, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.pointwise import check_dtype, numbers
from tilewright.ops.row import Op, fail, normalize_axis


@node
class ScanAttrs(Attrs):
    """The axis; `exclusive` leaves the element itself out, `reverse` starts at the end."""

    axis: int
    exclusive: bool = False
    reverse: bool = False


def _scan_type(name: str, attrs: ScanAttrs, ins: Sequence[TensorType]) -> TensorType:
    check_dtype(name, numbers, ins[0].dtype)
    if ins[0].rank == 0:
        raise fail(name, "a scalar has no axis")
    normalize_axis(name, attrs.axis, ins[0].rank)
    return ins[0]


def _scan(
    name: str,
    op: str,
    start: int,
    attrs: ScanAttrs,
    ins: Sequence[TensorType],
    outs: Sequence[TensorType],
) -> Func:
    """One block a line along the axis, which runs through it adding to the element before."""
    x = ins[0]
    axis = normalize_axis(name, attrs.axis, x.rank)
    length = x.shape[axis]
    outer = [d for d in range(x.rank) if d != axis]
    iters = tuple(Iter(f"v{d}", "S", x.shape[d], Var(f"i{d}")) for d in outer)

    def place(k: Expr) -> tuple[Expr, ...]:
        at = length - 1 - k if attrs.reverse else k
        return tuple(at if d == axis else Var(f"v{d}") for d in range(x.rank))

    k = Var("at.k")
    later, before = const(0) < k, place(k - 1)
    so_far = select(later, Load("y0", before, x.dtype, later), const(start, x.dtype))
    if attrs.exclusive:
        last = select(later, Load("x0", before, x.dtype, later), const(start, x.dtype))
        value = binary(op, so_far, last)
    else:
        value = binary(op, so_far, Load("x0", place(k), x.dtype))
    line = tuple(
        (const(0), length) if d == axis else (Var(f"v{d}"), const(1)) for d in range(x.rank)
    )
    body: Stmt = Block(
        name,
        iters,
        (Region("x0", line), Region("y0", line)),
        (Region("y0", line),),
        For("at.k", length, "serial", Store("y0", place(k), value)),
    )
    for d in reversed(outer):
        body = For(f"i{d}", x.shape[d], "serial", body)
    params = (Buffer("x0", x.dtype, x.shape), Buffer("y0", x.dtype, x.shape))
    return Func(name, params, ("y0",), body)


OPS = tuple(
    Op(
        name,
        partial(_scan_type, name),
        "opaque",
        ScanAttrs,
        loops=partial(_scan, name, op, start),
        doc=f"the running {word} along an axis",
    )
    for name, op, start, word in (("cumsum", "add", 0, "sum"), ("cumprod", "mul", 1, "product"))
)
