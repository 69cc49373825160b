"""Factors of matrices, and solutions by them: LU, Cholesky, triangles."""

from __future__ import annotations

from tilewright.arith.expr import const
from tilewright.core.dtypes import I64
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext
from tilewright.frontends.torch.convert.shape import expanded
from tilewright.ops.linalg.lu import LuAttrs, RowOrderAttrs
from tilewright.ops.linalg.solve_triangular import SolveTriangularAttrs
from tilewright.ops.tensor.creation import RangeAttrs


def swapped(c: TorchContext, n: AtenCall, x: str) -> str:
    """Every matrix transposed."""
    rank = c.type(x).rank
    return c.transpose(n, x, [*range(rank - 2), rank - 1, rank - 2])


def cholesky(c: TorchContext, n: AtenCall) -> Result:
    """The lower factor, or the upper one of the other triangle, and whether there is one."""
    x = swapped(c, n, n["self"]) if n["upper"] else n["self"]
    factor, info = c.g.add_many("cholesky", x, names=(n.name, "info"), loc=n.loc)
    return swapped(c, n, factor) if n["upper"] else factor, info


def lu_factor(c: TorchContext, n: AtenCall) -> Result:
    """Both factors in one matrix, the exchanges of rows, and whether a pivot is 0."""
    names = (n.name, "pivots", "info")
    return c.g.add_many("lu", n["A"], attrs=LuAttrs(n["pivot"]), names=names, loc=n.loc)


def solve_triangular(c: TorchContext, n: AtenCall) -> Result:
    """A triangle of equations; from the right both sides are transposed."""
    a, b = n["self"], n["B"]
    upper = n["upper"]
    if not n["left"]:
        a, b, upper = swapped(c, n, a), swapped(c, n, b), not upper
    shape = c.type(b).shape
    wanted = n.type.shape[:-2]
    a = expanded(c, n, a, (*wanted, *c.type(a).shape[-2:]))
    b = expanded(c, n, b, (*wanted, *shape[-2:]))
    attrs = SolveTriangularAttrs(upper, n["unitriangular"])
    found = c.add(n, "solve_triangular", a, b, attrs=attrs)
    return found if n["left"] else swapped(c, n, found)


def permutation(c: TorchContext, n: AtenCall) -> Result:
    """Ones where rows came from, after the exchanges of an LU factorization; see `lu_unpack`."""
    rows = c.type(n["LU_data"]).shape[-2]
    order = c.add(n, "row_order", n["LU_pivots"], attrs=RowOrderAttrs(rows))
    shape = c.type(order).shape
    order = c.reshape(n, order, (*shape[:-1], const(1), rows))
    steps = c.add(n, "range", attrs=RangeAttrs(const(0), const(1), rows, I64))
    found = c.add(n, "equal", order, c.reshape(n, steps, (rows, const(1))))
    return c.cast(n, found, n.dtype), None, None


CONVERTERS: dict[str, Converter] = {
    "aten.linalg_cholesky_ex": cholesky,
    "aten.linalg_lu_factor_ex": lu_factor,
    "aten.lu_unpack": permutation,
    "aten.linalg_solve_triangular": solve_triangular,
}
