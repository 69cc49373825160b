"""What tiles leave over is computed element by element, no more and no less of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.for_each import for_each
from tilewright.arith.expr import Binary, Var
from tilewright.arith.text import print_expr
from tilewright.finalize.cpu.loop_partition import loop_partition
from tilewright.finalize.cpu.remainder_loops import exact_rest, tile_loops
from tilewright.finalize.flatten import flatten
from tilewright.finalize.vectorize import vectorize
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import For, If
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import loops, statements

TILES = """
func @f(x: f32[M, N], out y: f32[N, M]) {
  for o in parallel((N + 7) // 8) {
    for c in serial((M + 7) // 8) {
      for p in serial(2) {partition=2} {
        for v in unroll(2) {partition=2} {
          for i in unroll(4) {partition=2} {
            for j in vectorize(4) {
              if o * 8 + p * 4 + i < N & c * 8 + v * 4 + j < M {
                y[o * 8 + p * 4 + i, c * 8 + v * 4 + j] = x[c * 8 + v * 4 + j, o * 8 + p * 4 + i]
              }
            }
          }
        }
      }
    }
  }
}"""


def _innermost(loop: For) -> If:
    stmt = loop.body
    while isinstance(stmt, For):
        stmt = stmt.body
    assert isinstance(stmt, If)
    return stmt


def _first(text: str) -> tuple[For, If, Binary]:
    loop = parse_func(text).body
    assert isinstance(loop, For)
    guard = _innermost(loop)
    assert isinstance(guard.cond, Binary)
    return loop, guard, guard.cond


@for_each("n", [0, 1, 3, 4, 5, 8, 13, 16])
@for_each("m", [0, 1, 4, 7, 9, 16])
def test_tiles_of_two_axes(n: int, m: int) -> None:
    func = parse_func(TILES)
    after = vectorize(loop_partition(flatten(func)))
    assert not [s for _, s in statements(after.body) if isinstance(s, If)]
    assert "?" not in print_func(after)
    x, y = np.arange(n * m, dtype="f4").reshape(m, n), np.full((n, m), -1, "f4")
    run_func(after, {"x": x.ravel(), "y": y.reshape(-1)}, {"N": n, "M": m})
    np.testing.assert_array_equal(y, x.T)


LINE = """
func @f(x: f32[N * 5 + 16], out y: f32[N * 5 + 16]) {{
  for o in serial({count}) {{partition=2}} {{
    for i in vectorize(4) {{
      if {guard} {{ y[o * 4 + i] = x[o * 4 + i] + 1.0 }}{otherwise}
    }}
  }}
}}"""


def _line(guard: str = "o * 4 + i < N", count: str = "(N + 3) // 4", otherwise: str = "") -> str:
    return LINE.format(guard=guard, count=count, otherwise=otherwise)


def test_the_rest_is_a_loop_over_elements() -> None:
    loop, guard, condition = _first(_line())
    (tile,) = tile_loops(loop, condition)
    rest = exact_rest(loop, tile, condition, Var("N") // 4, replace(tile, body=guard.then))
    assert print_expr(rest.extent) == "N % 4"
    assert rest.kind == "serial"
    assert not list(loops(rest.body))


@for_each("n", [0, 1, 4, 6, 11])
# More or fewer iterations than tiles: what the loop does not reach is not done either.
@for_each("count", ["(N + 3) // 4", "2", "N"])
@for_each("limit", ["N", "N - 3", "N + 2"])
def test_any_number_of_iterations(n: int, count: str, limit: str) -> None:
    before = parse_func(_line(f"o * 4 + i < {limit}", count))
    x = np.arange(5 * n + 16, dtype="f4")
    expected, found = np.full(5 * n + 16, -1, "f4"), np.full(5 * n + 16, -1, "f4")
    run_func(before, {"x": x, "y": expected}, {"N": n})
    run_func(loop_partition(before), {"x": x, "y": found}, {"N": n})
    np.testing.assert_array_equal(found, expected)


@for_each(
    "text",
    [
        _line("o * 4 + i < N", otherwise=" else { y[o * 4 + i] = 0.0 }"),
        _line("o * 4 + i * 2 < N"),
        _line("o * 5 + i < N"),
        _line().replace("{partition=2} ", ""),
    ],
)
def test_other_loops_stay_guarded(text: str) -> None:
    loop, _, condition = _first(text)
    assert tile_loops(loop, condition) == ()
