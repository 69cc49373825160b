"""The pieces that rows of operators share."""

from __future__ import annotations

import pytest

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import C64, F32, I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.graph.nodes import NO_ATTRS
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.op import (
    KINDS,
    Op,
    broadcast_index,
    broadcast_shapes,
    normalize_axis,
    product_dtype,
    same_dtype,
    same_type,
)
from tilewright.ops.registry import op_table
from tilewright.ops.shape.assumptions import assumptions

N, R, J = Var("N"), Var("r"), Var("j")


def test_axes() -> None:
    assert [normalize_axis("f", a, 3) for a in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    with pytest.raises(TypeCheckError, match="rank 0"):
        normalize_axis("f", 0, 0)
    for axis in (3, -4):
        with pytest.raises(TypeCheckError, match="rank 3"):
            normalize_axis("f", axis, 3)


def test_broadcasting() -> None:
    one, four = const(1), const(4)
    assert broadcast_shapes("f", (N, one), (four,)) == (N, four)
    assert broadcast_shapes("f", (), (N,)) == (N,)
    assert broadcast_shapes("f", (const(0),), (one,)) == (const(0),)
    assert broadcast_shapes("f", (N,), (four,)) == (
        four,
    )  # under a check, see ops.shape.assumptions
    with pytest.raises(TypeCheckError, match="dimensions 3, 4 do not broadcast"):
        broadcast_shapes("f", (const(3),), (four,))
    with assumptions(), pytest.raises(TypeCheckError, match="do not broadcast"):
        broadcast_shapes("f", (N,), (N + 1,))
    assert broadcast_index((one, four), (R, J)) == (const(0), J)
    assert broadcast_index((), (R, J)) == ()


def test_one_dtype() -> None:
    assert same_dtype("f", [tensor(F32, 1), tensor(F32, 2)]) == F32
    with pytest.raises(TypeCheckError, match="f32, i64"):
        same_dtype("f", [tensor(F32, 1), tensor(I64, 1)])


def test_cost() -> None:
    x = tensor(F32, N, 4)
    assert Op("f", same_type, "injective", flops=3).cost(NO_ATTRS, [x], [x]) is N * 4 * 3


def test_rows_are_complete() -> None:
    for row in op_table().values():
        assert row.kind in KINDS, row.name
        assert row.doc, f"{row.name} has no line that says what it is"


def test_complex_numbers_are_not_multiplied() -> None:
    real, other = TensorType(F32, ()), TensorType(C64, ())
    assert product_dtype("f", [real, real]) == F32
    with pytest.raises(TypeCheckError, match="c64"):
        product_dtype("f", [other, other])
