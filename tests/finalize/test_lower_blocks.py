from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.finalize.lower_blocks import lower_blocks
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import statements

SUMS = """
func @sums(A: f32[M, K], out C: f32[M]) {
  for i, k in serial((M + 3) // 4 * 4, K) {
    block "C" [vi: S(M) = i, vk: R(K) = k] reads A[vi, vk] writes C[vi] where i < M
      init { C[vi] = 0.0 }  { C[vi] += A[vi, vk] }
  } }
"""


@for_each(("m", "k"), [(1, 1), (5, 3), (8, 7), (0, 4)])
def test_sums_are_the_same(m: int, k: int) -> None:
    before = parse_func(SUMS)
    after = lower_blocks(before)
    a = np.random.default_rng(0).standard_normal((m, k)).astype("f4")
    expected, found = np.full(m, np.nan, "f4"), np.full(m, np.nan, "f4")
    run_func(before, {"A": a, "C": expected})
    run_func(after, {"A": a, "C": found})
    np.testing.assert_array_equal(found, expected)


def test_bindings_predicate_and_init() -> None:
    after = lower_blocks(parse_func(SUMS))
    assert not any(isinstance(s, Block) for _, s in statements(after.body))
    text = print_func(after)
    assert "if i < M {" in text
    assert "if k == 0 {" in text
    assert "C[i] += A[i, k]" in text


def test_nested_blocks() -> None:
    text = """
    func @f(x: f32[8], out y: f32[8]) {
      for i in serial(2) {
        block "outer" [o: S(2) = i] reads x[o * 4 : 4] writes y[o * 4 : 4] {
          for j in serial(4) {
            block "inner" [v: S(8) = o * 4 + j] reads x[v] writes y[v] { y[v] = x[v] * 2.0 }
          }
        }
      }
    }"""
    after = lower_blocks(parse_func(text))
    assert "y[i * 4 + j] = x[i * 4 + j] * 2.0" in print_func(after)
