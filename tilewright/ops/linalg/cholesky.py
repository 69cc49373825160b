"""The Cholesky factor of positive definite matrices: the lower triangle L of A = L L^T.

    %l: f32[8, 5, 5], %info: i32[8] = cholesky(%a)

`info` is 0, or the order of the least leading minor that is not positive. The upper triangle of A
is not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Var, cast, const, select, unary
from tilewright.arith.expr import call as function
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I32
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Func, If, Seq, Stmt
from tilewright.ir.types import TensorType
from tilewright.ops.linalg.matrix_rows import Matrix, check_matrices
from tilewright.ops.loop_builder import nest, parameters, spatial_block
from tilewright.ops.op import Op

NAME = "cholesky"


def _type(_: Attrs, ins: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
    check_matrices(NAME, ins[0], square=True)
    return ins[0], TensorType(I32, ins[0].shape[:-2])


def _loops(_: Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    params = parameters(ins, outs)

    def body(*batch: Expr) -> Stmt:
        given, factor = (Matrix(name, batch, ins[0].dtype) for name in ("x0", "y0"))
        return _factored(given, factor, Matrix("y1", batch, I32), ins[0].shape[-1])

    nests = spatial_block(NAME, outs[1].shape, body, params)
    return Func(NAME, tuple(params.values()), ("y0", "y1"), nests)


def _factored(given: Matrix, factor: Matrix, info: Matrix, size: Expr) -> Stmt:
    """Column by column: the root of the pivot, the column scaled, the rest less its products."""
    row, column, k = Var("at.r"), Var("at.c"), Var("at.k")
    zero = const(0, given.dtype)
    copied = factor.put(row, column, select(column <= row, given.at(row, column), zero))
    rest = simplify(size - 1 - k)
    below, m, n = k + 1 + Var("at.i"), k + 1 + Var("at.m"), k + 1 + Var("at.n")
    pivot = factor.at(k, k)
    is_bad = info.at().eq(0) & unary("not", zero < pivot)
    step = (
        If(is_bad, info.put(cast(I32, k) + const(1, I32))),
        factor.put(k, k, function("sqrt", pivot)),
        nest(("at.i",), (rest,), factor.put(below, k, factor.at(below, k) / pivot)),
        nest(
            ("at.m", "at.n"),
            (rest, simplify(Var("at.m") + 1)),
            factor.put(m, n, factor.at(m, n) - factor.at(m, k) * factor.at(n, k)),
        ),
    )
    return Seq(
        (
            nest(("at.r", "at.c"), (size, size), copied),
            info.put(const(0, I32)),
            nest(("at.k",), (size,), Seq(step)),
        )
    )


OPS = (
    Op(
        NAME,
        _type,
        "opaque",
        loops=_loops,
        flops=lambda _, ins, outs: ins[0].elements * ins[0].shape[-1],
        doc="the lower triangle whose product with its transpose is the matrix, and whether it is",
    ),
)
