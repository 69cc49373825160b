"""Determinants of square matrices, by Gaussian elimination with partial pivoting."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load, Var, call, cast, const, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64, DType
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Alloc, Buffer, Func, If, Seq, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulator
from tilewright.ops.loop_builder import nest, parameters, spatial_block
from tilewright.ops.op import Op, fail
from tilewright.ops.shape.assumptions import same_size

# A copy of the matrices, the product of pivots, the pivot's row, and one element being swapped.
WORK, PRODUCT, PIVOT, SPARE = "work", "product", "pivot", "spare"


def _type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    if x.rank < 2 or not x.dtype.is_float:
        raise fail("determinant", f"{x} is no matrix of floats")
    if same_size("determinant", *x.shape[-2:]) is None:
        raise fail("determinant", f"matrices of {x} are not square")
    return TensorType(x.dtype, x.shape[:-2])


def _determinant(_: Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    x, batch = ins[0], outs[0].shape
    real = accumulator(x.dtype)
    own = {
        WORK: Buffer(WORK, real, x.shape),
        PRODUCT: Buffer(PRODUCT, real, batch),
        PIVOT: Buffer(PIVOT, I64, batch),
        SPARE: Buffer(SPARE, real, batch),
    }
    params = parameters(ins, outs)

    def body(*b: Expr) -> Stmt:
        return _eliminated(x, real, b, x.shape[-1])

    nests: Stmt = spatial_block("determinant", batch, body, {**params, **own})
    for buffer in own.values():
        nests = Alloc(buffer, nests)
    return Func("determinant", tuple(params.values()), ("y0",), nests)


def _eliminated(x: TensorType, real: DType, b: tuple[Expr, ...], size: Expr) -> Stmt:
    """What is done to one matrix: copied, eliminated column by column, the product stored."""

    def work(row: Expr, column: Expr) -> Load:
        return Load(WORK, (*b, row, column), real)

    def put(row: Expr, column: Expr, value: Expr) -> Stmt:
        return Store(WORK, (*b, row, column), value)

    k, pivot, product = Var("at.k"), Load(PIVOT, b, I64), Load(PRODUCT, b, real)
    one, zero = const(1, real), const(0, real)
    place = (Var("at.r"), Var("at.c"))
    copied = put(*place, cast(real, Load("x0", (*b, *place), x.dtype)))
    rest = simplify(size - 1 - k)
    below, column = k + 1 + Var("at.i"), Var("at.j")
    new = work(below, k)
    # NaN counts as the greatest, so that it is not left out where the others are 0.
    is_greater = (call("abs", work(pivot, k)) < call("abs", new)) | call("isnan", new)
    swap = (Store(SPARE, b, work(k, column)), put(k, column, work(pivot, column)))
    back = put(pivot, column, Load(SPARE, b, real))
    row, behind = k + 1 + Var("at.m"), k + 1 + Var("at.n")
    # A matrix without a pivot is singular: what follows must be a number, to be multiplied by 0.
    factor = select(work(k, k).eq(zero), zero, work(row, k) / work(k, k))
    step = (
        Store(PIVOT, b, k),
        nest(("at.i",), (rest,), If(is_greater, Store(PIVOT, b, below))),
        nest(("at.j",), (size,), Seq((*swap, back))),
        Store(PRODUCT, b, product * select(pivot.eq(k), one, -one) * work(k, k)),
        nest(
            ("at.m", "at.n"),
            (rest, rest),
            put(row, behind, work(row, behind) - factor * work(k, behind)),
        ),
    )
    return Seq(
        (
            nest(("at.r", "at.c"), (size, size), copied),
            Store(PRODUCT, b, one),
            nest(("at.k",), (size,), Seq(step)),
            Store("y0", b, cast(x.dtype, product)),
        )
    )


OPS = (
    Op(
        "determinant",
        _type,
        "opaque",
        loops=_determinant,
        flops=lambda _, ins, outs: ins[0].elements * ins[0].shape[-1],
        doc="The determinant of every matrix in the last two dimensions.",
    ),
)
