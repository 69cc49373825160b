"""Parallel loops: machine code on several threads equals the interpreter."""

from __future__ import annotations

import numpy as np

from tests.codegen.native_func import check_native_func, llvm_text
from tests.for_each import for_each
from tilewright.ir.loop.text import parse_func

PREFIX_SUMS = """
func @sums(x: f32[M * N], out y: f32[M]) {
  for i in parallel(M) {
    alloc t: f32[3] @local
    t[0] = 0.0
    for j in serial(N) {
      if j % 2 == 0 { t[0] = t[0] + x[i * N + j] } else { t[0] = t[0] - x[i * N + j] * 0.5 }
    }
    y[i] = t[0]
  }
}"""


@for_each("threads", [1, 2, 3])
@for_each(("m", "n"), [(7, 5), (0, 3), (4, 0), (1, 1)])
def test_parallel_rows(m: int, n: int, threads: int) -> None:
    x = np.random.default_rng(0).standard_normal(m * n).astype("f4")
    check_native_func(
        parse_func(PREFIX_SUMS), {"x": x, "y": np.zeros(m, "f4")}, {"M": m, "N": n}, threads
    )


def test_a_parallel_loop_gets_everything_it_mentions() -> None:
    text = """
    func @f(x: f32[N], out y: f32[N * M]) {
      for a in serial(M) {
        for b in parallel(N) {
          if b + a < N { y[a * N + b] = x[b + a] } else { y[a * N + b] = x[0] }
        }
      }
    }"""
    x = np.arange(6, dtype="f4")
    check_native_func(parse_func(text), {"x": x, "y": np.zeros(18, "f4")}, {"N": 6, "M": 3}, 2)


def test_signature_and_text() -> None:
    text = llvm_text(parse_func(PREFIX_SUMS))
    assert "define void @sums(ptr %b0, ptr %b1, i64 %s0, i64 %s1)" in text
    assert "call void @tw_parallel_work(ptr @sums.p" in text
    fixed = "func @f(out y: f32[9]) { for i in parallel(9) { y[i] = 1.0 } }"
    assert "call void @tw_parallel(ptr @f.p" in llvm_text(parse_func(fixed))


OUTLINED = """
func @f(x: f32[M * N], out y: f32[M * N]) {
  for i in parallel(M) {
    alloc t: f32[8] @local
    for j in serial(N) { t[j] = x[i * N + j] }
    for k in serial(i % (N // 2 + 1)) {outlined=1} {
      y[i * N + k + (i + M) // N - (i + M) // N // 2 * 2] = t[k] + x[i * N] * 2.0
    }
  }
}"""


@for_each(("m", "n"), [(7, 5), (0, 3), (9, 2)])
def test_an_outlined_loop_gets_everything_it_mentions(m: int, n: int) -> None:
    x = np.random.default_rng(0).standard_normal(m * n).astype("f4")
    buffers = {"x": x, "y": np.zeros(m * n, "f4")}
    check_native_func(parse_func(OUTLINED), buffers, {"M": m, "N": n}, 2)


def test_an_outlined_loop_stays_a_function_without_the_callers_divisions() -> None:
    functions = llvm_text(parse_func(OUTLINED)).split("define ")
    (own,) = (f for f in functions if "noinline" in f)
    assert "div" not in own
    assert "call void @f.p" in "".join(f for f in functions if f is not own)
