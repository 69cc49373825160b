from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.codegen.llvm.every_expression import DTYPES, awkward
from tests.codegen.native_func import check_native_func
from tests.for_each import for_each
from tilewright.arith.expr import Const, const
from tilewright.codegen.llvm.types import (
    intrinsic_suffix,
    literal,
    memory_type,
    register_type,
    splat,
)
from tilewright.core.dtypes import (
    BF16,
    BOOL,
    C128,
    F8E4M3FN,
    F8E5M2,
    F16,
    F32,
    F64,
    I64,
    INT4,
    U8,
    DType,
)
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.nodes import Buffer, Func, Seq, Store


def test_spelling() -> None:
    assert register_type(BOOL, 4) == "<4 x i1>"
    assert memory_type(BOOL, 4) == "<4 x i8>"
    assert memory_type(BF16) == register_type(BF16) == "i16"
    assert intrinsic_suffix(F16, 8) == "v8f16"
    assert intrinsic_suffix(U8) == "i8"
    assert splat(3, I64, 2) == "splat (i64 3)"
    assert register_type(INT4, 4) == "<4 x i4>"
    assert memory_type(INT4, 4) == "<4 x i8>"
    assert intrinsic_suffix(F8E5M2, 4) == "v4i8"
    assert register_type(C128) == "i128"
    with pytest.raises(CodegenError, match=r"codegen.dtype.*c32"):
        register_type(DType("c32", "complex", 32))


def test_literals_are_bit_patterns() -> None:
    assert literal(1.0, F64) == "0x3FF0000000000000"
    assert literal(0.1, F32) == f"0x{np.float64(np.float32(0.1)).view(np.uint64):016X}"
    assert literal(-0.0, F16) == "0xH8000"
    assert literal(1.0, BF16) == str(0x3F80)
    assert literal(-448.0, F8E4M3FN) == str(0xFE)
    assert literal(-8, INT4) == "-8"
    assert literal(True, BOOL) == "true"


@for_each("dtype", DTYPES, ids=str)
def test_every_literal_is_stored_exactly(dtype: DType) -> None:
    values = awkward(dtype)
    items = [v.item() if dtype != BF16 else float(v) for v in values]
    literals = [Const(v, BOOL) if dtype == BOOL else const(v, dtype) for v in items]
    body = Seq(tuple(Store("y", (const(i),), c) for i, c in enumerate(literals)))
    func = Func("f", (Buffer("y", dtype, (const(len(values)),)),), ("y",), body)
    y = np.zeros_like(values)
    check_native_func(func, {"y": y})


def test_nan_literals_of_16_bits_are_quiet() -> None:
    assert np.isnan(np.array(int(literal(float("nan"), F16)[3:], 16), np.uint16).view(np.float16))
    bits = np.array(int(literal(float("nan"), BF16)), np.uint16)
    assert np.isnan(bits.view(ml_dtypes.bfloat16))
