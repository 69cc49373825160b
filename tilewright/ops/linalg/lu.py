"""LU factors of matrices by Gaussian elimination, with the rows exchanged by partial pivoting.

    %lu: f32[8, 5, 4], %pivots: i32[8, 4], %info: i32[8] = lu(%a)

`lu` holds U and below it L without its diagonal of ones. Row k was exchanged with row
`pivots[k] - 1`; `info` is 0, or the number of the first pivot that is 0.
`row_order` says which rows of the matrix these exchanges lead to.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Var, as_int, cast, const, minimum
from tilewright.arith.expr import call as function
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I32, I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Alloc, Buffer, Func, If, Seq, Stmt
from tilewright.ir.types import TensorType
from tilewright.ops.linalg.matrix_rows import Matrix, check_matrices
from tilewright.ops.loop_builder import nest, parameters, spatial_block
from tilewright.ops.op import Op, fail

# The pivot's row, and one element being exchanged.
PIVOT, SPARE = "pivot", "spare"


@node
class LuAttrs(Attrs):
    """Whether rows are exchanged."""

    pivots: bool = True


@node
class RowOrderAttrs(Attrs):
    """How many rows there are."""

    rows: Expr


def _shorter(x: TensorType) -> Expr:
    rows, columns = x.shape[-2:]
    known = as_int(rows), as_int(columns)
    if known[0] is not None and known[1] is not None:
        return const(min(known[0], known[1]))
    return rows if rows is columns else simplify(minimum(rows, columns))


def _lu_type(_: LuAttrs, ins: Sequence[TensorType]) -> tuple[TensorType, TensorType, TensorType]:
    x = ins[0]
    check_matrices("lu", x)
    batch = x.shape[:-2]
    return x, TensorType(I32, (*batch, _shorter(x))), TensorType(I32, batch)


def _lu_loops(attrs: LuAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    x, batch = ins[0], ins[0].shape[:-2]
    own = {PIVOT: Buffer(PIVOT, I64, batch), SPARE: Buffer(SPARE, x.dtype, batch)}
    params = parameters(ins, outs)

    def body(*b: Expr) -> Stmt:
        return _eliminated(attrs, x, b)

    nests: Stmt = spatial_block("lu", batch, body, {**params, **own})
    for buffer in own.values():
        nests = Alloc(buffer, nests)
    return Func("lu", tuple(params.values()), ("y0", "y1", "y2"), nests)


def _eliminated(attrs: LuAttrs, x: TensorType, b: tuple[Expr, ...]) -> Stmt:
    """One matrix: copied, then column by column the pivot found, its row exchanged, the rest."""
    rows, columns = x.shape[-2:]
    work, given = Matrix("y0", b, x.dtype), Matrix("x0", b, x.dtype)
    pivots, info = Matrix("y1", b, I32), Matrix("y2", b, I32)
    pivot, spare, k = Matrix(PIVOT, b, I64), Matrix(SPARE, b, x.dtype), Var("at.k")
    place = (Var("at.r"), Var("at.c"))
    rest, behind_all = simplify(rows - 1 - k), simplify(columns - 1 - k)
    found, below = pivot.at(), k + 1 + Var("at.i")
    is_greater = function("abs", work.at(found, k)) < function("abs", work.at(below, k))
    search = nest(("at.i",), (rest,), If(is_greater, pivot.put(below)))
    column = Var("at.j")
    exchange = (
        spare.put(work.at(k, column)),
        work.put(k, column, work.at(found, column)),
        work.put(found, column, spare.at()),
    )
    row, factor_row, behind = k + 1 + Var("at.m"), k + 1 + Var("at.l"), k + 1 + Var("at.n")
    number, is_zero = cast(I32, k) + const(1, I32), work.at(k, k).eq(const(0, x.dtype))
    scaled = work.put(factor_row, k, work.at(factor_row, k) / work.at(k, k))
    no_pivot = If(info.at().eq(0), info.put(number))
    step = (
        pivot.put(k),
        *((search,) if attrs.pivots else ()),
        pivots.put(k, cast(I32, found) + const(1, I32)),
        nest(("at.j",), (columns,), Seq(exchange)),
        If(is_zero, no_pivot, nest(("at.l",), (rest,), scaled)),
        nest(
            ("at.m", "at.n"),
            (rest, behind_all),
            work.put(row, behind, work.at(row, behind) - work.at(row, k) * work.at(k, behind)),
        ),
    )
    return Seq(
        (
            nest(("at.r", "at.c"), (rows, columns), work.put(*place, given.at(*place))),
            info.put(const(0, I32)),
            nest(("at.k",), (_shorter(x),), Seq(step)),
        )
    )


def _order_type(attrs: RowOrderAttrs, ins: Sequence[TensorType]) -> TensorType:
    if not ins[0].rank or not ins[0].dtype.is_integer:
        raise fail("row_order", f"{ins[0]} are no exchanges")
    return TensorType(I64, (*ins[0].shape[:-1], attrs.rows))


def _order_loops(
    attrs: RowOrderAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    x, batch = ins[0], ins[0].shape[:-1]
    own = Buffer(SPARE, I64, batch)
    params = parameters(ins, outs)

    def body(*b: Expr) -> Stmt:
        order, spare, k, r = Matrix("y0", b, I64), Matrix(SPARE, b, I64), Var("at.k"), Var("at.r")
        other = cast(I64, Matrix("x0", b, x.dtype).at(k)) - 1
        exchange = (
            spare.put(order.at(k)),
            order.put(k, order.at(other)),
            order.put(other, spare.at()),
        )
        counted = nest(("at.r",), (attrs.rows,), order.put(r, r))
        return Seq((counted, nest(("at.k",), (x.shape[-1],), Seq(exchange))))

    nests = spatial_block("row_order", batch, body, {**params, SPARE: own})
    return Func("row_order", tuple(params.values()), ("y0",), Alloc(own, nests))


OPS = (
    Op(
        "lu",
        _lu_type,
        "opaque",
        LuAttrs,
        loops=_lu_loops,
        flops=lambda _, ins, outs: ins[0].elements * _shorter(ins[0]),
        doc="LU factors in one matrix, the exchanges of rows, and whether a pivot is 0",
    ),
    Op(
        "row_order",
        _order_type,
        "opaque",
        RowOrderAttrs,
        loops=_order_loops,
        flops=0,
        doc="which row each is after exchanges of rows, which are counted from 1",
    ),
)
