from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.codegen.llvm.every_expression import at, store_all
from tests.codegen.native_func import llvm_text, run_native
from tests.for_each import for_each
from tilewright.arith.expr import Binary, Cast, Select
from tilewright.arith.operators import COMPARISONS
from tilewright.core.dtypes import BOOL, C64, C128, F32, DType
from tilewright.core.errors import CodegenError

PARTS = (0.0, -0.0, 1.0, -2.5, np.nan, np.inf)
NUMPY = {"lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal}


def _pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.array([complex(re, im) for re, im in itertools.product(PARTS, PARTS)], dtype.numpy)
    return np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))


@for_each("lanes", [1, 4])
@for_each("dtype", [C64, C128], ids=str)
def test_comparisons_are_numpys(dtype: DType, lanes: int) -> None:
    x, y = _pairs(dtype)
    a, b = at("x", dtype, lanes), at("y", dtype, lanes)
    chosen = Select(Binary("eq", a, b), a, b)
    exprs = [*(Binary(op, a, b) for op in COMPARISONS), Cast(BOOL, a), chosen]
    outputs = {f"o{i}": np.zeros(len(x), e.dtype.numpy) for i, e in enumerate(exprs)}
    run_native(store_all(exprs, dtype, len(x), lanes), {"x": x, "y": y, **outputs})
    ordered = ~(np.isnan(x) | np.isnan(y))  # what NumPy says of parts that are NaN is its own
    for i, op in enumerate(COMPARISONS):
        where = ordered if op in ("lt", "le") else slice(None)
        with np.errstate(invalid="ignore"):
            expected = NUMPY[op](x, y)
        np.testing.assert_array_equal(outputs[f"o{i}"][where], expected[where], err_msg=op)
    np.testing.assert_array_equal(outputs["o4"], x != 0)
    np.testing.assert_array_equal(outputs["o5"].view("u8"), np.where(x == y, x, y).view("u8"))


def test_an_address_may_be_that_of_a_float() -> None:
    memory = np.zeros(9, "f8")
    x = memory[1:].view("c16")
    x[:] = [1 + 2j, 3, -1j, 0]
    found = np.zeros(4, "c16")
    func = store_all([at("x", C128, 4)], C128, 4, 4)
    assert "align 8" in llvm_text(func)
    run_native(func, {"x": x, "y": x, "o0": found})
    np.testing.assert_array_equal(found, x)


def test_there_is_no_arithmetic() -> None:
    a = at("x", C64, 1)
    for e in (Binary("add", a, a), Cast(F32, a)):
        with pytest.raises(CodegenError, match=r"codegen.operator.*c64"):
            llvm_text(store_all([e], C64, 4, 1))
