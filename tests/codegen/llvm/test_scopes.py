from __future__ import annotations

from tilewright.arith.expr import Load, Var, const
from tilewright.arith.vector import Ramp
from tilewright.codegen.llvm.scopes import CheapExpressions, depth_of
from tilewright.core.dtypes import F32, I64

a, b = Var("a"), Var("b")


def test_what_may_be_computed_in_vain() -> None:
    cheap = CheapExpressions()
    assert a * 4 + b in cheap
    assert (a < b) & (b < 7) in cheap
    assert a // 8 in cheap
    assert a // b not in cheap
    assert a % b + 1 not in cheap
    assert Ramp(a, 1, 4) not in cheap
    assert Load("x", (a,), F32) not in cheap


def test_an_expression_is_as_deep_as_its_deepest_variable() -> None:
    depths = {"a": 2, "b": 5}
    assert depth_of(a + 1, depths) == 2
    assert depth_of(a * b, depths) == 5
    assert depth_of(const(3, I64) + Var("size"), depths) == 0
