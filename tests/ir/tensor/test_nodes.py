from __future__ import annotations

import pytest

from tilewright.arith.expr import Load, Reduce, Var, const
from tilewright.core.dtypes import BOOL, F32
from tilewright.ir.tensor.nodes import Stage, Tensor

X = Tensor("x", F32, (Var("N"), const(4)))
I = Var("i")  # noqa: E741


def test_indexing_builds_loads():
    assert X[I, 2] is Load("x", (I, const(2)), F32)
    assert X.at(I, 0, when=I < 3).mask is (I < 3)
    with pytest.raises(AssertionError, match="rank 2"):
        X[I]


def test_what_a_stage_defines():
    total = Reduce("sum", ((Var("k"), const(4)),), X[I, Var("k")])
    stage = Stage("y", (Var("N"),), ("i",), total)
    assert stage.is_reduction
    assert stage.tensor == Tensor("y", F32, (Var("N"),))
    assert stage.indices == (I,)
    assert Stage("z", (Var("N"),), ("i",), X[I, 0] < 0.0).dtype == BOOL
