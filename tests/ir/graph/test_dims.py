from __future__ import annotations

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.graph.dims import map_exprs, symbols_of
from tilewright.ir.types import OptionalType, SequenceType, tensor
from tilewright.ops.image.resize import ResizeAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs

N, M = Var("N"), Var("M")


def test_expressions_are_found_wherever_they_stand():
    assert symbols_of(ReshapeAttrs((N * 2, M))) == {"N", "M"}
    assert symbols_of(ResizeAttrs((N,), ((const(1), M),))) == {"N", "M"}
    assert symbols_of((tensor(F32, 3), SequenceType(OptionalType(tensor(F32, N))))) == {"N"}
    assert symbols_of(ReshapeAttrs((const(2),))) == frozenset()


def test_expressions_are_replaced():
    changed = map_exprs(ResizeAttrs((N,), ((const(1), N),), mode="cubic"), lambda e: e + 1)
    assert changed == ResizeAttrs((N + 1,), ((const(2), N + 1),), mode="cubic")
    assert map_exprs((tensor(F32, N),), lambda e: const(4)) == (tensor(F32, 4),)
