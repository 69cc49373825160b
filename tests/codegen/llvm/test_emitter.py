from __future__ import annotations

import numpy as np

from tests.codegen.native_func import check_native_func, llvm_text
from tilewright.arith.expr import Binary, Var, const
from tilewright.codegen.llvm.emitter import divisor, split_constant
from tilewright.core.dtypes import U8
from tilewright.ir.loop.text import parse_func


def test_a_load_is_repeated_after_a_store() -> None:
    text = """
    func @f(x: u8[4], out y: u8[4]) {
      for i in serial(4) { y[i] = x[i] + x[i]  y[i] = y[i] + x[i] }
    }"""
    x = np.array([1, 2, 255, 128], U8.numpy)
    check_native_func(parse_func(text), {"x": x, "y": np.zeros(4, np.uint8)})


def test_what_an_index_is_a_multiple_of() -> None:
    a, b = Var("a"), Var("b")
    moved = Binary("xor", a * 24, b * 8)
    assert divisor(a * 6 + 9) == 3
    assert divisor(moved) == 8
    assert divisor(moved * 4 + 64) == 32
    assert divisor(Binary("xor", a, b * 8)) == 1
    assert divisor(const(0)) == 0


def test_the_known_part_of_an_index() -> None:
    a = Var("a")
    assert split_constant(a * 2 + 5 - 7) == (a * 2, -2)
    assert split_constant(a) == (a, 0)
    assert split_constant(const(9)) == (const(9), 0)


def test_elements_at_known_distances_share_an_address() -> None:
    text = """
    func @f(x: f32[N], out y: f32[N]) {
      for i in serial(N - 2) { y[i] = x[i] + x[i + 1] + x[i + 2] }
    }"""
    func = parse_func(text)
    assert " add nsw " not in llvm_text(func).split("body", 1)[1]
    x = np.arange(9, dtype=np.float32)
    check_native_func(func, {"x": x, "y": np.zeros_like(x)}, {"N": 9})
