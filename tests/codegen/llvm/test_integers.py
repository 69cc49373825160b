"""Division and shifts where the machine's are undefined; all values are in `test_expressions`."""

from __future__ import annotations

import numpy as np

from tests.codegen.native_func import check_native_func, llvm_text
from tests.for_each import for_each
from tilewright.core.dtypes import I8, I32, I64, U8, U64, DType
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func

OPERATORS = ("a / b", "a // b", "a % b", "rem(a, b)", "a << b", "a >> b")


def _func(dtype: DType, formula: str) -> Func:
    value = formula.replace("a", "x[i]").replace("b", "y[i]")
    return parse_func(
        f"func @f(x: {dtype}[N], y: {dtype}[N], out z: {dtype}[N])"
        f"{{ for i in serial(N) {{ z[i] = {value} }} }}"
    )


@for_each("dtype", [I8, I32, I64, U8, U64], ids=str)
@for_each("formula", OPERATORS)
def test_every_operand_has_a_result(dtype: DType, formula: str) -> None:
    low, high = np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max
    left = np.array([low, high, 0, 1, high // 2], dtype.numpy)
    divisors = [0, 1, high, dtype.bits, 3] + ([-1, low, -3] if low else [])
    x, y = (m.ravel() for m in np.meshgrid(left, np.array(divisors, dtype.numpy)))
    arrays = {"x": x.copy(), "y": y.copy(), "z": np.zeros_like(x)}
    check_native_func(_func(dtype, formula), arrays, {"N": len(x)})


def test_operands_known_to_be_in_range_cost_nothing_more() -> None:
    text = llvm_text(
        parse_func("func @f(out z: i64[N]) { for i in serial(N) { z[i] = i // 7 + i % 3 } }")
    )
    assert "udiv" in text
    assert "urem" in text
    assert "select" not in text


def test_a_size_of_zero_does_not_trap() -> None:
    func = parse_func("func @f(out z: i64[3]) { for i in serial(3) { z[i] = i // N + i % N } }")
    check_native_func(func, {"z": np.ones(3, np.int64)}, {"N": 0})
