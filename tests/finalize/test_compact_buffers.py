from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.for_each import for_each
from tilewright.finalize.compact_buffers import compact_buffers
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import statements
from tilewright.target.cpu import UNASKED_STACK_BYTES

TILED = """
func @f(x: f32[N], out y: f32[N]) {
  alloc t: f32[N]
  for o in serial((N + 7) // 8) {
    for i in serial(8) { if o * 8 + i < N { t[o * 8 + i] = x[o * 8 + i] + 1.0 } }
    for j in serial(8) { if o * 8 + j < N { y[o * 8 + j] = t[o * 8 + j] * 2.0 } }
  }
}"""


def _allocations(func: Func) -> list[tuple[tuple[str, ...], str]]:
    return [
        (tuple(s.name for s in path if isinstance(s, For)), str(stmt.buffer))
        for path, stmt in statements(func.body)
        if isinstance(stmt, Alloc)
    ]


def _same(before: Func, after: Func, n: int) -> None:
    x = np.arange(n, dtype="f4")
    expected, found = np.zeros(n, "f4"), np.zeros(n, "f4")
    run_func(before, {"x": x, "y": expected}, {"N": n})
    run_func(after, {"x": x, "y": found}, {"N": n})
    np.testing.assert_array_equal(found, expected)


@for_each("n", [0, 1, 8, 13])
def test_a_tile_moves_into_the_loop_that_uses_it(n: int) -> None:
    before = parse_func(TILED)
    after = compact_buffers(before)
    assert _allocations(after) == [(("o",), "t: f32[8] @local")]
    _same(before, after, n)


def test_windows_that_overlap_hold_their_halo() -> None:
    text = """
    func @f(x: f32[N + 2], out y: f32[N]) {
      alloc t: f32[N + 2]
      for o in serial(N) {
        for i in serial(3) { t[o + i] = x[o + i] }
        y[o] = t[o] + t[o + 1] * t[o + 2]
      }
    }"""
    before = parse_func(text)
    after = compact_buffers(before)
    x = np.arange(9, dtype="f4")
    expected, found = np.zeros(7, "f4"), np.zeros(7, "f4")
    run_func(before, {"x": x, "y": expected}, {"N": 7})
    run_func(after, {"x": x, "y": found}, {"N": 7})
    np.testing.assert_array_equal(found, expected)


def test_what_outlives_an_iteration_stays_whole() -> None:
    text = """
    func @f(x: f32[N], out y: f32[N]) {
      alloc t: f32[N]
      for i in serial(N) { t[i] = x[i] }
      for j in serial(N) { y[j] = t[N - 1 - j] }
    }"""
    before = parse_func(text)
    after = compact_buffers(before)
    assert _allocations(after) == [((), "t: f32[N]")]
    _same(before, after, 5)


def test_large_tiles_stay_in_planned_memory() -> None:
    size = UNASKED_STACK_BYTES // 4 + 1
    text = TILED.replace("7", str(size - 1)).replace("8", str(size))
    assert _allocations(compact_buffers(parse_func(text)))[0][1] == "t: f32[N]"
    asked = text.replace("alloc t: f32[N]", "alloc t: f32[N] @local")
    assert _allocations(compact_buffers(parse_func(asked))) == [(("o",), f"t: f32[{size}] @local")]


def test_an_unused_buffer_disappears() -> None:
    text = "func @f(out y: f32[1]) { alloc t: f32[4] y[0] = 1.0 }"
    assert _allocations(compact_buffers(parse_func(text))) == []


def test_register_scope_is_kept() -> None:
    text = TILED.replace("alloc t: f32[N]", "alloc t: f32[N] @register")
    assert _allocations(compact_buffers(parse_func(text))) == [(("o",), "t: f32[8] @register")]


def test_tiles_move_with_their_buffer() -> None:
    func = parse_func(
        """
        func @f(x: f32[64, 8], out y: f32[64, 8]) {
          alloc t: f32[64, 8]
          for o in serial(4) {
            tile copy t[o * 16 : 16, 0 : 8] <- x[o * 16 : 16, 0 : 8]
            for i, j in serial(16, 8) { y[o * 16 + i, j] = t[o * 16 + i, j] * 2.0 }
          }
        }"""
    )
    after = compact_buffers(func)
    assert _allocations(after) == [(("o",), "t: f32[16, 8] @local")]
    x = np.arange(512, dtype="f4").reshape(64, 8)
    found = np.zeros((64, 8), "f4")
    run_func(after, {"x": x, "y": found})
    np.testing.assert_array_equal(found, x * 2)


CARRIED = """
func @f(x: f32[N, 4], out y: f32[N]) {
  alloc m: f32[N]
  for n in serial(N) {
    for k in serial(4) {
      m[n] = select(k == 0, 0.0, m[n]) + x[n, k]
      y[n] = m[n] * 2.0
    }
  }
}"""


def test_what_an_iteration_leaves_for_the_next_stays_around_the_loop() -> None:
    after = compact_buffers(parse_func(CARRIED))
    assert _allocations(after) == [(("n",), "m: f32[1] @local")]


VARYING = """
func @f(x: f32[N], out y: f32[N]) {
  alloc t: f32[N]
  for o in serial((N + 7) // 8) {
    for i in serial(min(N - o * 8, 8)) { t[o * 8 + i] = x[o * 8 + i] + 1.0 }
    for j in serial(min(N - o * 8, 8)) { y[o * 8 + j] = t[o * 8 + j] * 2.0 }
  }
}"""


@for_each("n", [0, 1, 8, 13])
def test_a_loop_that_runs_differently_often_needs_its_most(n: int) -> None:
    before = parse_func(VARYING)
    after = compact_buffers(before)
    assert _allocations(after) == [(("o",), "t: f32[8] @local")]
    _same(before, after, n)


def test_a_loop_that_runs_once_needs_room_for_one() -> None:
    func = compact_buffers(
        parse_func("""
func @f(x: f32[32], out y: f32[32]) {
  alloc t: f32[4, 8]
  for k in serial(1) {
    for i in serial(8) { t[k, i] = x[k * 8 + i] }
    for j in serial(8) { y[j] = t[0, j] }
  }
}""")
    )
    assert _allocations(func) == [(("k",), "t: f32[1, 8] @local")]


def test_the_loops_around_an_allocation_count() -> None:
    func = parse_func("""
    func @f(out y: f32[8]) {
      for b in grid(2) {
        alloc t: f32[4] @shared
        for i in thread(4) { t[i] = 1.0 }
        for j in thread(4) { y[b * 4 + j] = t[3 - j] }
      }
    }""")
    seen: list[str] = []

    def choose(_: Buffer, outer: Sequence[For], __: int) -> str:
        seen.extend(loop.name for loop in outer)
        return "shared"

    assert _allocations(compact_buffers(func, choose)) == [(("b",), "t: f32[4] @shared")]
    assert seen == ["b"]
