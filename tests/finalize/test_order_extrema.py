from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.function import ModuleText
from tilewright.codegen.llvm import compile_assembly
from tilewright.codegen.statements import emit_func
from tilewright.finalize.order_extrema import order_extrema
from tilewright.finalize.vectorize import vectorize
from tilewright.ir.loop.interp import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.target.cpu import NAMED

X86, ARM = NAMED["x86-64-v4"], NAMED["aarch64"]
SPECIAL = np.array([np.nan, np.inf, -np.inf, -1.5, 0.0, 2.5], np.float32)
FORMULAS = (
    "max(a[i], 0.0)",
    "min(1.0, a[i])",
    "max(a[i], b[i])",
    "min(b[i], max(a[i], -1.0))",
    "max(a[i], (nan:f32))",
    "min(max(min(a[i], b[i]), b[i]) + 1.0, a[i])",
)


def _func(formula: str) -> Func:
    return parse_func(
        f"""
        func @f(a: f32[36], b: f32[36], out y: f32[36]) {{
          for i in serial(36) {{ y[i] = {formula} }}
        }}"""
    )


def _run(func: Func) -> np.ndarray:
    y = np.zeros(36, np.float32)
    with np.errstate(all="ignore"):
        run_func(func, {"a": np.repeat(SPECIAL, 6), "b": np.tile(SPECIAL, 6), "y": y}, {})
    return y


@pytest.mark.parametrize("formula", FORMULAS)
def test_meaning(formula: str) -> None:
    before = _func(formula)
    after = order_extrema(before, X86)
    assert "max(" not in print_func(after)
    assert "min(" not in print_func(after)
    np.testing.assert_array_equal(_run(after), _run(before))


def test_machines_that_keep_a_nan_and_indices_stay() -> None:
    func = _func(FORMULAS[0])
    assert order_extrema(func, ARM) is func
    indices = _func("a[min(i, 7)]")
    assert order_extrema(indices, X86) == indices


def test_a_maximum_with_a_constant_is_one_instruction() -> None:
    func = parse_func(
        """
        func @f(a: f32[16], out y: f32[16]) {
          for i in vectorize(16) { y[i] = max(a[i], 2.0) }
        }"""
    )
    module = ModuleText()
    emit_func(module, order_extrema(vectorize(func), X86), ())
    text = compile_assembly(module.text(), X86)
    assert text.count("vmaxps") == 1
    assert "vcmp" not in text
