from __future__ import annotations

from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32, I64
from tilewright.ir.types import OptionalType, SequenceType, tensor

N = Var("N")


def test_texts():
    assert str(tensor(F32, N, 64)) == "f32[N, 64]"
    assert str(tensor(I64)) == "i64[]"
    assert str(OptionalType(SequenceType(tensor(F32, 2)))) == "optional(seq(f32[2]))"


def test_shapes():
    assert tensor(F32, N, 64).rank == 2
    assert tensor(F32, 3, 4).static_shape == (3, 4)
    assert tensor(F32, N, 4).static_shape is None
    assert tensor(F32, 3, 0).static_shape == (3, 0)
    assert str(tensor(F32, N, 4).elements) == "N * 4"
    assert tensor(F32, N) == tensor(F32, Var("N"))
