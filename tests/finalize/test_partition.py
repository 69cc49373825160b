from __future__ import annotations

import numpy as np
import pytest

from tilewright.arith.walk import conjuncts
from tilewright.finalize.partition import partition
from tilewright.finalize.vectorize import vectorize
from tilewright.ir.loop.interp import run_func
from tilewright.ir.loop.nodes import Func, If
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import loops, statements


def _guarded(n: str, extent: str, limit: str) -> Func:
    return parse_func(
        f"""
        func @f(x: f32[{n} + 16], out y: f32[{extent} * 4]) {{
          for o in serial({extent}) {{
            for i in vectorize(4) {{
              if o * 4 + i < {limit} {{ y[o * 4 + i] = x[o * 4 + i] + 1.0 }}
            }}
          }}
        }}"""
    )


def _same(before: Func, after: Func, shapes: dict[str, int], sizes: dict[str, int]) -> None:
    x = np.arange(shapes["x"], dtype="f4")
    expected, found = np.full(shapes["y"], -1, "f4"), np.full(shapes["y"], -1, "f4")
    run_func(before, {"x": x, "y": expected}, sizes)
    run_func(after, {"x": x, "y": found}, sizes)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 11])
# The guard may hold everywhere, nowhere, or end anywhere: the loop must not be left.
@pytest.mark.parametrize("limit", ["N", "N + 5", "N - 6", "7", "N * 2 - 3"])
def test_main_part_and_tail(limit: str, n: int) -> None:
    before = _guarded("N", "((N + 3) // 4)", limit)
    extent = -(-n // 4)
    shapes, sizes = {"x": n + 16, "y": extent * 4}, {"N": n}
    _same(before, partition(before), shapes, sizes)
    _same(before, vectorize(partition(before)), shapes, sizes)


@pytest.mark.parametrize(("extent", "limit"), [(3, 12), (3, 9), (3, 0), (3, -5), (3, 40), (0, 0)])
def test_constant_sizes(extent: int, limit: int) -> None:
    before = _guarded("0", str(extent), str(limit))
    after = partition(before)
    _same(before, after, {"x": 16, "y": extent * 4}, {})
    guards = [s for _, s in statements(after.body) if isinstance(s, If)]
    assert bool(guards) == (0 < extent and limit < 4 * extent)


def test_the_main_part_has_no_guard() -> None:
    after = partition(_guarded("N", "((N + 3) // 4)", "N"))
    text = print_func(after)
    assert "for o in serial(N // 4) {" in text
    assert text.index("if ") > text.index("for o.tail")
    names = [loop.name for loop in loops(after.body)]
    assert len(set(names)) == len(names)


TRIANGLE = """
func @f(x: f32[N], out y: f32[N]) {
  for r in serial(N) {
    for o in serial((N + 3) // 4) {
      for i in vectorize(4) {
        if o * 4 + i < N { y[o * 4 + i] = y[o * 4 + i] + x[o * 4 + i ? o * 4 + i < r + 1] }
      }
    }
  }
}"""


@pytest.mark.parametrize("n", [0, 1, 5, 12])
def test_a_guard_may_depend_on_outer_loops(n: int) -> None:
    before = parse_func(TRIANGLE)
    shapes, sizes = {"x": n, "y": n}, {"N": n}
    _same(before, partition(before), shapes, sizes)


DATA = """
func @f(n: i64[8], out y: f32[12]) {
  for o in serial(3) {
    for i in vectorize(4) {
      if o * 4 + i < n[i] + n[0] { y[o * 4 + i] = 1.0 } else { y[o * 4 + i] = 2.0 }
    }
  }
}"""


def test_a_guard_on_data_stays() -> None:
    before = parse_func(DATA)
    assert partition(before) == before


def test_a_guard_whose_limit_moves_with_the_inner_loop_stays_inside() -> None:
    text = """
    func @f(out y: f32[8, 8]) {
      for a in serial(8) {
        for o in serial(2) {
          for i in vectorize(4) { if a < o * 4 + i + 1 { y[a, o * 4 + i] = 1.0 } }
        }
      }
    }"""
    before = parse_func(text)
    expected, found = np.zeros((8, 8), "f4"), np.zeros((8, 8), "f4")
    run_func(before, {"y": expected})
    run_func(partition(before), {"y": found})
    np.testing.assert_array_equal(found, expected)


def test_a_parallel_loop_keeps_its_main_part_parallel() -> None:
    text = print_func(
        partition(
            parse_func(
                print_func(_guarded("N", "((N + 3) // 4)", "N")).replace(
                    "for o in serial", "for o in parallel"
                )
            )
        )
    )
    assert "for o in parallel(N // 4)" in text
    assert "for o.tail in serial" in text


def test_conjuncts() -> None:
    func = parse_func("func @f(out y: f32[4]) { if N < 4 & 2 < N & M < N { y[0] = 1.0 } }")
    assert isinstance(func.body, If)
    assert [str(c) for c in conjuncts(func.body.cond)] == ["N < 4", "2 < N", "M < N"]
