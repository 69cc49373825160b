from __future__ import annotations

from tests.for_each import for_each
from tilewright.arith.expr import Cast, Load, Var, const
from tilewright.core.dtypes import BF16, F16, F32, F64, I8, I64, DType
from tilewright.ir.tensor.build import Builder
from tilewright.ops.accumulation import accumulate, accumulator, widen


@for_each(
    ("dtype", "wide"), [(F16, F32), (BF16, F32), (F32, F32), (F64, F64), (I8, I8), (I64, I64)]
)
def test_accumulator(dtype: DType, wide: DType) -> None:
    assert accumulator(dtype) == wide


def test_widen_leaves_wide_elements_alone() -> None:
    wide = Load("x", (Var("i"),), F32)
    assert widen(wide) is wide
    assert widen(Load("x", (Var("i"),), F16)) is Cast(F32, Load("x", (Var("i"),), F16))


@for_each(("dtype", "stages"), [(F32, ["y"]), (F16, ["total", "y"])])
def test_accumulate_adds_a_stage_only_where_needed(dtype: DType, stages: list[str]) -> None:
    b = Builder("sum")
    x = b.input("x", dtype, (3, 4))
    y = accumulate(b, (const(3),), dtype, lambda i: b.sum((4,), lambda k: widen(x.at(i, k))))
    assert [s.name for s in b.stages] == stages
    assert y.dtype == dtype
