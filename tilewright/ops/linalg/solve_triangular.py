"""The solution of A X = B, where A is a triangle: row by row, each less those that are known.

    %x: f32[8, 5, 2] = solve_triangular(%a, %b) {upper=false, unit=false}

The other triangle of A is not read, nor its diagonal where it is of ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Var
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Func, Seq, Stmt
from tilewright.ir.types import TensorType
from tilewright.ops.linalg.matrix_rows import Matrix, check_matrices
from tilewright.ops.loop_builder import nest, parameters, spatial_block
from tilewright.ops.op import Op, fail, same_dtype
from tilewright.ops.shape.assumptions import same_size

NAME = "solve_triangular"


@node
class SolveTriangularAttrs(Attrs):
    """Which triangle it is, and whether its diagonal is of ones."""

    upper: bool = False
    unit: bool = False


def _type(_: SolveTriangularAttrs, ins: Sequence[TensorType]) -> TensorType:
    a, b = ins
    check_matrices(NAME, a, square=True)
    same_dtype(NAME, ins)
    pairs = list(zip(a.shape[:-1], b.shape[:-1], strict=False))
    if a.rank != b.rank or any(same_size(NAME, p, q) is None for p, q in pairs):
        raise fail(NAME, f"{a} does not fit {b}")
    return b


def _loops(
    attrs: SolveTriangularAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    params = parameters(ins, outs)

    def body(*batch: Expr) -> Stmt:
        given, right, found = (Matrix(name, batch, ins[0].dtype) for name in ("x0", "x1", "y0"))
        return _solved(attrs, given, right, found, outs[0].shape[-2:])

    nests = spatial_block(NAME, outs[0].shape[:-2], body, params)
    return Func(NAME, tuple(params.values()), ("y0",), nests)


def _solved(
    attrs: SolveTriangularAttrs,
    given: Matrix,
    right: Matrix,
    found: Matrix,
    shape: tuple[Expr, ...],
) -> Stmt:
    size, columns = shape
    k, place = Var("at.k"), (Var("at.r"), Var("at.c"))
    solved = simplify(size - 1 - k) if attrs.upper else k
    left = simplify(size - 1 - k)
    row = Var("at.m") if attrs.upper else k + 1 + Var("at.m")
    column, divided = Var("at.n"), Var("at.d")
    pivot = found.put(solved, divided, found.at(solved, divided) / given.at(solved, solved))
    less = found.at(row, column) - given.at(row, solved) * found.at(solved, column)
    step = (
        *(() if attrs.unit else (nest(("at.d",), (columns,), pivot),)),
        nest(("at.m", "at.n"), (left, columns), found.put(row, column, less)),
    )
    return Seq(
        (
            nest(("at.r", "at.c"), (size, columns), found.put(*place, right.at(*place))),
            nest(("at.k",), (size,), Seq(step)),
        )
    )


OPS = (
    Op(
        NAME,
        _type,
        "opaque",
        SolveTriangularAttrs,
        loops=_loops,
        flops=lambda _, ins, outs: outs[0].elements * ins[0].shape[-1],
        doc="the solution of a triangle of equations",
    ),
)
