"""Operators that order elements: topk.

Each row is read once; an element that belongs among the best so far is inserted into the ordered
list that the output row holds. Most elements of a long row fail the one comparison with the last of
the list, so the cost is about one pass over the input.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load, Var, as_int, call, const, select, unary
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL, I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import For, Func, If, Seq, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.loop_builder import parameters, spatial_block
from tilewright.ops.op import Op, fail, normalize_axis


@node
class TopKAttrs(Attrs):
    """How many elements of each row along `axis`, the greatest or the least, are wanted."""

    k: Expr
    axis: int = -1
    largest: bool = True


def _topk_type(attrs: TopKAttrs, ins: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
    x, k = ins[0], simplify(attrs.k)
    if not x.rank or x.dtype == BOOL:
        raise fail("topk", f"{x} cannot be ordered along an axis")
    axis = normalize_axis("topk", attrs.axis, x.rank)
    size, wanted = as_int(x.shape[axis]), as_int(k)
    if wanted is not None and (wanted < 0 or (size is not None and wanted > size)):
        raise fail("topk", f"{k} elements of {x} along axis {axis}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return TensorType(x.dtype, shape), TensorType(I64, shape)


def precedes(a: Expr, b: Expr, largest: bool) -> Expr:
    """Whether `a` comes strictly before `b`; NaN counts as greater than all numbers."""
    if not a.dtype.is_float:
        return b < a if largest else a < b
    a_nan, b_nan = call("isnan", a), call("isnan", b)
    if largest:
        return (b < a) | (a_nan & unary("not", b_nan))
    return (a < b) | (b_nan & unary("not", a_nan))


def _topk(attrs: TopKAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    x, k = ins[0], outs[0].shape[normalize_axis("topk", attrs.axis, ins[0].rank)]
    axis = normalize_axis("topk", attrs.axis, x.rank)
    n, slot = Var("at.n"), simplify(k - 1 - Var("at.back"))  # slots from the last to the first

    def row(*rest: Expr) -> Stmt:
        def at(place: Expr) -> tuple[Expr, ...]:
            return (*rest[:axis], place, *rest[axis:])

        def held(place: Expr, when: Expr) -> Load:
            """The element in a slot; slot `n` and those after it are still empty at element `n`."""
            return Load("y0", at(place), x.dtype, when)

        new = Load("x0", at(n), x.dtype)
        empty = slot.eq(n)
        moves = empty | precedes(new, held(slot, slot < n), attrs.largest)
        has_previous = const(0) < slot
        previous = held(slot - 1, has_previous)
        shifted = has_previous & precedes(new, previous, attrs.largest)
        older = Load("y1", at(slot - 1), I64, has_previous)
        insert = Seq(
            (
                Store("y1", at(slot), select(shifted, older, n)),
                Store("y0", at(slot), select(shifted, previous, new)),
            )
        )
        shift = For("at.back", k, "serial", If((slot <= n) & moves, insert))
        last = held(simplify(k - 1), (const(0) < k) & (k <= n))
        belongs = (n < k) | precedes(new, last, attrs.largest)
        return For("at.n", x.shape[axis], "serial", If(belongs, shift))

    others = (*x.shape[:axis], *x.shape[axis + 1 :])
    buffers = parameters(ins, outs)
    body = spatial_block("topk", others, row, buffers)
    return Func("topk", tuple(buffers.values()), ("y0", "y1"), body)


def _topk_flops(_: TopKAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    return ins[0].elements


OPS = (
    Op(
        "topk",
        _topk_type,
        "opaque",
        TopKAttrs,
        loops=_topk,
        flops=_topk_flops,
        doc="The greatest or least elements along an axis, in order, and their indices;"
        " of equal elements the one with the lower index comes first.",
    ),
)
