"""Gradients of products in special types, of formulas over labels, determinants and factors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.core.errors import UnsupportedError
from tilewright.ir.graph.nodes import Attrs
from tilewright.ops.gradient.formula import (
    Parts,
    Rule,
    constant,
    count_up,
    matrix_transpose,
    total,
    transpose,
    value,
)
from tilewright.ops.linalg.einsum import EinsumAttrs, parse_equation
from tilewright.ops.linalg.solve_triangular import SolveTriangularAttrs
from tilewright.ops.op import GraphOps, flat
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import TriluAttrs
from tilewright.ops.traced_value import Value


def _products(_: Attrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value, Value]:
    """Formed in the type of the result's gradient, and rounded to that of the operands."""
    a, b = (x.cast(dy.dtype) for x in ins)
    return dy.apply("matmul", matrix_transpose(b)), matrix_transpose(a).apply("matmul", dy)


def _contract(g: GraphOps, attrs: EinsumAttrs, ins: Sequence[str]) -> str:
    """Operands spread over all labels, multiplied, and summed over those not in the result."""
    values = [value(g, name) for name in ins]
    parsed = parse_equation(attrs.equation, [v.shape for v in values])
    labels = "".join(dict.fromkeys(parsed.output + "".join(parsed.operands)))
    spread = [_aligned(v, term, labels) for v, term in zip(values, parsed.operands, strict=True)]
    product = reduce(lambda a, b: a * b, spread)
    summed = [d for d, label in enumerate(labels) if label not in parsed.output]
    return total(product, summed, keepdims=False).name


def _aligned(x: Value, term: str, labels: str) -> Value:
    """An operand with one dimension a label, in their order; repeated labels are its diagonal."""
    for label in dict.fromkeys(term):
        while term.count(label) > 1:
            first, second = [d for d, c in enumerate(term) if c == label][:2]
            x = total(x * _same_place(x, first, second), (second,), keepdims=False)
            term = term[:second] + term[second + 1 :]
    order = [label for label in labels if label in term]
    x = transpose(x, [term.index(label) for label in order])
    sizes = dict(zip(order, x.shape, strict=True))
    return x.reshape(tuple(sizes.get(label, const(1)) for label in labels))


def _same_place(x: Value, first: int, second: int) -> Value:
    """1 where two dimensions have the same index, else 0."""
    lines = [
        count_up(x, x.shape[axis]).reshape(
            tuple(n if d == axis else const(1) for d, n in enumerate(x.shape))
        )
        for axis in (first, second)
    ]
    return lines[0].apply("equal", lines[1]).cast(x.dtype)


def _determinant(_: Attrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """The matrix of cofactors, by the determinants of all minors: right for singular ones, too."""
    x = ins[0]
    size = as_int(x.shape[-1])
    if size is None:
        raise UnsupportedError(
            "autodiff.size",
            f"the gradient of determinants of [{x.shape[-1]}, {x.shape[-1]}] matrices",
            help="give the size of the matrices a value with `dims`",
        )
    rank, scale = len(x.shape), dy.reshape((*dy.shape, const(1), const(1)))
    if size <= 1:
        return (scale + (x - x),)
    others = np.array([[k for k in range(size) if k != i] for i in range(size)], np.int64)
    rows = x.apply("gather", constant(x, others), attrs=GatherAttrs(rank - 2))
    minors = rows.apply("gather", constant(x, others), attrs=GatherAttrs(rank))
    # [batch, i, rows, j, columns] with the minors last
    front = tuple(range(rank - 2))
    minors = transpose(minors, (*front, rank - 2, rank, rank - 1, rank + 1))
    signs = np.fromfunction(lambda i, j: (-1.0) ** (i + j), (size, size)).astype(x.dtype.numpy)
    return (scale * minors.apply("determinant") * constant(x, signs),)


def _lower(x: Value, diagonal: int = 0) -> Value:
    return x.apply("trilu", attrs=TriluAttrs(upper=False, k=const(diagonal)))


def _solve_triangular(
    attrs: SolveTriangularAttrs, ins: Sequence[Value], y: Value, dy: Value
) -> tuple[Value, Value]:
    """The triangle that is read gets minus the products of both sides."""
    other = SolveTriangularAttrs(not attrs.upper, attrs.unit)
    right = matrix_transpose(ins[0]).apply("solve_triangular", dy, attrs=other)
    product = -right.apply("matmul", matrix_transpose(y))
    first = int(attrs.unit) if attrs.upper else -int(attrs.unit)
    triangle = TriluAttrs(upper=attrs.upper, k=const(first))
    return product.apply("trilu", attrs=triangle), right


def _cholesky(
    _: Attrs, ins: Sequence[Value], y: Sequence[Value], dy: Sequence[Value | None]
) -> tuple[Value | None]:
    """What is not read, above the diagonal, gets nothing; below it stands for both sides."""
    factor, seed = y[0], dy[0]
    if seed is None:
        return (None,)
    across, backward = matrix_transpose(factor), SolveTriangularAttrs(upper=True)
    product = across.apply("matmul", _lower(seed))
    halved = (_lower(product) + _lower(product, -1)) * 0.5
    left = across.apply("solve_triangular", halved, attrs=backward)
    both = across.apply("solve_triangular", matrix_transpose(left), attrs=backward)
    twice = both + matrix_transpose(both)
    return ((_lower(twice) + _lower(twice, -1)) * 0.5,)


RULES: dict[str, Rule] = {
    "cholesky": _cholesky,
    "row_order": flat,
    "solve_triangular": _solve_triangular,
    "matmul_f32out": _products,
    "matmul_f16acc": _products,
    "matmul_i32acc": flat,
    "determinant": _determinant,
}
PARTS: dict[str, Parts] = {"contract": _contract}
NO_GRADIENT = {"lu": "the exchanges of rows have no slope, and the factors none without them"}
