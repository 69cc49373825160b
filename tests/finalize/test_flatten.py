from __future__ import annotations

import numpy as np

from tilewright.finalize.flatten import flatten
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func, print_func

TEXT = """
func @f(x: f32[M, N], out y: f32[N, M]) {
  alloc w: f32[M, N]
  for i, j in serial(M, N) { w[i, j] = x[i, j ? j < N - 1] }
  for a, b in serial(N, M) {
    alloc t: f32[2, 2] @local
    t[1, 0] = w[b, a]
    y[a, b] = t[1, 0]
  }
}"""


def test_rows_follow_each_other() -> None:
    before = parse_func(TEXT)
    after = flatten(before)
    x = np.arange(15, dtype="f4").reshape(3, 5)
    expected, found = np.zeros((5, 3), "f4"), np.zeros(15, "f4")
    run_func(before, {"x": x, "y": expected})
    run_func(after, {"x": x.ravel(), "y": found, "w": np.zeros(15, "f4")}, {"M": 3, "N": 5})
    np.testing.assert_array_equal(found, expected.ravel())


def test_memory_of_the_function_becomes_parameters() -> None:
    after = flatten(parse_func(TEXT))
    assert [str(p) for p in after.params] == ["x: f32[M * N]", "y: f32[M * N]", "w: f32[M * N]"]
    assert after.outputs == ("y",)
    text = print_func(after)
    assert "alloc t: f32[4] @local" in text
    assert "t[2] = w[N * b + a]" in text


def test_a_scalar_has_one_element() -> None:
    after = flatten(parse_func("func @f(x: f32[], out y: f32[]) { y[] = x[] + 1.0 }"))
    y = np.zeros(1, "f4")
    run_func(after, {"x": np.ones(1, "f4"), "y": y})
    assert y[0] == 2


def test_a_tile_keeps_the_distance_of_its_rows() -> None:
    func = parse_func(
        """
        func @f(x: f32[4, 3, 16], out y: f32[8, 4]) {
          tile copy y[0 : 4, 0 : 4] <- x[0 : 4, 1, 8 : 4]
        }"""
    )
    assert "y[0 : 4] <- x[24 : 48]" in print_func(flatten(func))
