"""Matrix products; leading dimensions are batches and broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tilewright.arith.expr import Expr, const
from tilewright.core.dtypes import F16, F32, I32
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.accumulation import (
    accumulate,
    integer_product,
    narrow_product,
    widening_product,
)
from tilewright.ops.op import (
    Op,
    broadcast_index,
    broadcast_shapes,
    fail,
    product_dtype,
    same_dtype,
)
from tilewright.ops.shape.assumptions import same_size
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.traced_value import Value


def _product_shape(op: str, ins: Sequence[TensorType]) -> Shape:
    x, w = ins
    if x.rank < 2 or w.rank < 2:
        raise fail(op, f"operands {x} and {w} must have rank 2 or more")
    if same_size(op, x.shape[-1], w.shape[-2]) is None:
        raise fail(op, f"inner dimensions of {x} and {w} differ")
    batch = broadcast_shapes(op, x.shape[:-2], w.shape[:-2])
    return (*batch, x.shape[-2], w.shape[-1])


def _matmul_type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    return TensorType(product_dtype("matmul", ins), _product_shape("matmul", ins))


def _integer_type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    if not all(t.dtype.is_integer and t.dtype.bits == 8 for t in ins):
        raise fail("matmul_i32acc", f"operands {ins[0]} and {ins[1]} must be of 8-bit integers")
    return TensorType(I32, _product_shape("matmul_i32acc", ins))


def _wide_type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    dtype = same_dtype("matmul_f32out", ins)
    if not dtype.is_float or dtype.bits != 16:
        raise fail("matmul_f32out", f"operands {ins[0]} and {ins[1]} must be of 16-bit floats")
    return TensorType(F32, _product_shape("matmul_f32out", ins))


def _half_type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    if any(t.dtype != F16 for t in ins):
        raise fail("matmul_f16acc", f"operands {ins[0]} and {ins[1]} must be of f16")
    return TensorType(F16, _product_shape("matmul_f16acc", ins))


def _matmul(
    product: Callable[[Expr, Expr], Expr],
    b: Builder,
    _: Attrs,
    ins: Sequence[Tensor],
    outs: Sequence[TensorType],
) -> Tensor:
    """Sums of products of two elements."""
    x, w = ins

    def element(*i: Expr) -> Expr:
        *batch, row, column = i
        left = broadcast_index(x.shape[:-2], batch)
        right = broadcast_index(w.shape[:-2], batch)
        return b.sum(
            (x.shape[-1],),
            lambda k: product(x.at(*left, row, k), w.at(*right, k, column)),
        )

    return accumulate(b, outs[0].shape, outs[0].dtype, element)


def _matmul_flops(_: Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    return outs[0].elements * ins[0].shape[-1] * const(2)


def _matmul_vjp(_: Attrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value, Value]:
    a, b = ins
    return dy.apply("matmul", _matrix_transpose(b)), _matrix_transpose(a).apply("matmul", dy)


def _matrix_transpose(x: Value) -> Value:
    rank = len(x.shape)
    perm = (*range(rank - 2), rank - 1, rank - 2)
    return x.apply("transpose", attrs=TransposeAttrs(perm))


OPS = (
    Op(
        "matmul",
        _matmul_type,
        "out_fusable",
        te=partial(_matmul, widening_product),
        flops=_matmul_flops,
        vjp=_matmul_vjp,
        doc="Matrix product of the last two dimensions.",
    ),
    Op(
        "matmul_i32acc",
        _integer_type,
        "out_fusable",
        te=partial(_matmul, integer_product),
        flops=_matmul_flops,
        doc="Matrix product of 8-bit integers, signed or not, summed in i32.",
    ),
    Op(
        "matmul_f32out",
        _wide_type,
        "out_fusable",
        te=partial(_matmul, widening_product),
        flops=_matmul_flops,
        doc="Matrix product of 16-bit floats, summed and given in f32.",
    ),
    Op(
        "matmul_f16acc",
        _half_type,
        "out_fusable",
        te=partial(_matmul, narrow_product),
        flops=_matmul_flops,
        doc="Matrix product of f16, a few terms at a time summed in f16, their sums in f32.",
    ),
)
