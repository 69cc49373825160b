"""Matrix products and determinants: MatMul, Gemm, Einsum, Det."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.arith.expr import Expr, as_expr
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, simple
from tilewright.ops.linalg.einsum import EinsumAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs


def reshaped(c: OnnxContext, n: OnnxNode, value: str, shape: Sequence[Expr | int]) -> str:
    """A value under another shape."""
    dims = tuple(as_expr(d) for d in shape)
    return c.add(n, "reshape", value, attrs=ReshapeAttrs(dims))


Product = Callable[[str, str], str]


def as_matrices(c: OnnxContext, n: OnnxNode, x: str, w: str, product: Product) -> str:
    """A product; a vector is a row on the left and a column on the right, and then dropped."""
    x_rank, w_rank = c.type(x).rank, c.type(w).rank
    if x_rank == 0 or w_rank == 0:
        raise n.invalid(f"operands {c.type(x)} and {c.type(w)} must not be scalars")
    if x_rank == 1:
        x = reshaped(c, n, x, (1, *c.type(x).shape))
    if w_rank == 1:
        w = reshaped(c, n, w, (*c.type(w).shape, 1))
    y = product(x, w)
    shape = list(c.type(y).shape)
    if w_rank == 1:
        del shape[-1]
    if x_rank == 1:
        del shape[-1 if w_rank == 1 else -2]
    return y if len(shape) == c.type(y).rank else reshaped(c, n, y, shape)


def matmul(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """NumPy's matmul."""
    x, w = n.required(0), n.required(1)
    return (as_matrices(c, n, x, w, lambda a, b: c.add(n, "matmul", a, b)),)


def _scaled(c: OnnxContext, n: OnnxNode, value: str, factor: float) -> str:
    if factor == 1:
        return value
    return c.add(n, "mul", value, c.constant(factor, c.type(value).dtype))


def gemm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """`alpha * A' B' + beta * C`, leaving out what does nothing."""
    operands = [n.required(0), n.required(1)]
    for i, name in enumerate(("transA", "transB")):
        if n.int_attr(name, 0):
            operands[i] = c.add(n, "transpose", operands[i], attrs=TransposeAttrs((1, 0)))
    y = _scaled(c, n, c.add(n, "matmul", *operands), n.float_attr("alpha", 1.0))
    if n.has_input(2):
        y = c.add(n, "add", y, _scaled(c, n, n.input(2), n.float_attr("beta", 1.0)))
    return (y,)


CONVERTERS: dict[str, Converter] = {
    "MatMul": matmul,
    "Gemm": gemm,
    "Det": simple("determinant"),
    "Einsum": simple("einsum", lambda n: EinsumAttrs(n.str_attr("equation"))),
}
