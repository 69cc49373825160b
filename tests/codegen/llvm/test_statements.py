"""Loops, guards and allocations: machine code equals the interpreter."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.codegen.native_func import NativeFunc, check_native_func, llvm_text, run_native
from tilewright.arith.expr import Load, Var, const
from tilewright.arith.vector import Ramp
from tilewright.core.dtypes import F32
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Seq, Store
from tilewright.ir.loop.text import parse_func


def test_loops_of_extent_one_may_share_a_name_with_others() -> None:
    """Copies of a loop keep its name; what was known of the first is wrong in the second."""
    x, y = Load("x", (Var("i"),), F32), Load("x", (Var("i") + 1,), F32)
    once = For("i", const(1), "serial", Store("y", (Var("i"),), x))
    more = For("i", const(4), "serial", Store("y", (Var("i") + 1,), y))
    params = (Buffer("x", F32, (const(8),)), Buffer("y", F32, (const(8),)))
    found = np.zeros(8, "f4")
    given = np.arange(8, dtype="f4")
    run_native(Func("f", params, ("y",), Seq((once, more))), {"x": given, "y": found})
    np.testing.assert_array_equal(found, [0, 1, 2, 3, 4, 0, 0, 0])


def test_extents_and_conditions_are_read_when_they_are_reached() -> None:
    text = """
    func @f(x: i64[4], out y: i64[4]) {
      y[0] = x[0]
      for i in serial(y[0]) { y[1] = y[1] + 1  y[0] = y[0] + 1 }
      if y[0] == 6 { y[2] = y[0] }
      for i.1 in serial(y[2]) { y[3] = y[3] + y[1] }
    }"""
    y = np.array([9, 0, 0, 0])
    check_native_func(parse_func(text), {"x": np.array([3, 0, 0, 0]), "y": y})


def test_a_rolled_loop_says_so() -> None:
    loop = "for {} in serial(9) {} {{ for {}.1 in serial(3) {{ x[{}] = x[{}] + 1.0 }} }}"
    text = " ".join(loop.format(i, notes, i, i, i) for i, notes in (("i", "{rolled=1}"), ("j", "")))
    found = llvm_text(parse_func(f"func @f(out x: f32[9]) {{ {text} }}"))
    assert found.count("!llvm.loop") == 1
    assert found.count('!{!"llvm.loop.unroll.disable"}') == 1


def test_masked_scalar_store() -> None:
    text = """
    func @f(x: f64[N], out y: f64[N]) {
      for i in serial(N) { y[i ? x[i] < 1.0:f64] = x[i] }
    }"""
    x = np.array([0.5, 2.0, np.nan, -1.0])
    check_native_func(parse_func(text), {"x": x, "y": np.full(4, 7.0)}, {"N": 4})


def test_output_may_be_the_input() -> None:
    text = "func @f(x: f32[8], out y: f32[8]) { for i in serial(8) { y[i] = x[i] * 2.0 } }"
    native = NativeFunc(parse_func(text))
    x = np.arange(8, dtype="f4")
    native({"x": x, "y": x})
    np.testing.assert_array_equal(x, 2 * np.arange(8))
    native.close()


def test_what_finalize_should_have_removed_is_refused() -> None:
    block = """
    func @f(out y: f32[4]) {
      for i in serial(4) { block "b" [v: S(4) = i] writes y[v] { y[v] = 1.0 } }
    }"""
    with pytest.raises(CodegenError, match=r"codegen.statement.*Block"):
        llvm_text(parse_func(block))
    big = Alloc(Buffer("t", F32, (Var("N"),), "local"), Store("t", (const(0),), const(1.0, F32)))
    with pytest.raises(CodegenError, match=r"codegen.stack"):
        llvm_text(Func("f", (), (), big))


def test_vector_store_of_a_scalar() -> None:
    body = Store("y", (Ramp(const(0), 1, 4),), const(3.0, F32))
    func = Func("f", (Buffer("y", F32, (const(4),)),), ("y",), body)
    check_native_func(func, {"y": np.zeros(4, "f4")})


HOISTED = """
func @f(x: f32[N, M], out y: f32[N, M]) {
  for i in serial(N) {
    if i % M < 3 {
      for j in serial(M) { y[i * M + j] = x[i * M + j] * 2.0 }
    } else {
      for j.1 in serial(M) {
        for k in serial(1) { y[i * M + j.1 + k] = x[(i + 1) % N * M + j.1] }
      }
    }
  }
}"""


def test_what_does_not_change_in_a_loop_is_computed_before_it() -> None:
    func = parse_func(HOISTED.replace("[N, M]", "[N * M]"))
    rng = np.random.default_rng(0)
    for rows, columns in ((5, 7), (1, 1), (0, 3), (4, 0)):
        x = rng.random(rows * columns, np.float32)
        check_native_func(func, {"x": x, "y": np.zeros_like(x)}, {"M": columns, "N": rows})
    blocks = re.split(r"\n(?=\w+:)", llvm_text(func))
    last = next(block for block in blocks if block.count("load float") and "fmul" not in block)
    assert not re.search(r" (mul|urem|udiv) ", last)


def test_a_quotient_stays_in_its_branch() -> None:
    func = parse_func(HOISTED.replace("[N, M]", "[N * M]"))
    blocks = re.split(r"\n(?=\w+:)", llvm_text(func))
    choice = next(block for block in blocks if "then" in block.rsplit("br ", 1)[-1])
    assert choice.count(" urem ") == 1


def test_unrolled_copies_have_buffers_of_one_name() -> None:
    """What is known of the address of one is not that of the other."""
    func = parse_func("""func @copies(x: f32[4], out y: f32[4]) {
      for i in serial(2) {
        seq {
          seq {
            alloc t: f32[4] @local
            t[3] = 9.0
            y[i] = t[3]
          }
          seq {
            alloc t: f32[4] @local
            for a in serial(4) { t[a] = x[a] }
            y[i + 2] = t[3]
          }
        }
      }
    }""")
    y = np.zeros(4, np.float32)
    run_native(func, {"x": np.arange(4, dtype=np.float32), "y": y})
    np.testing.assert_array_equal(y, [9, 9, 3, 3])
