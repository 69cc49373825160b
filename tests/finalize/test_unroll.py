from __future__ import annotations

import numpy as np
import pytest

from tilewright.arith.expr import const
from tilewright.arith.simplify import simplify
from tilewright.arith.text import parse_expr
from tilewright.arith.vector import Ramp
from tilewright.arith.walk import loads, substitute
from tilewright.finalize.unroll import unroll
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import For, Store
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import expressions, loops, statements_in

TEXT = """
func @f(x: f32[10], out y: f32[10]) {
  for o in serial(3) {
    for i in unroll(4) {
      for j in unroll(1) {
        if o * 4 + i < 10 { y[o * 4 + i] = x[o * 4 + i ? i < 3] } else { y[0] = 7.0 }
      }
    }
  }
}"""


def test_copies_mean_the_same() -> None:
    before = parse_func(TEXT)
    after = unroll(before)
    assert [loop.name for loop in loops(after.body)] == ["o"]
    x = np.arange(10, dtype="f4")
    expected, found = np.zeros(10, "f4"), np.zeros(10, "f4")
    run_func(before, {"x": x, "y": expected})
    run_func(after, {"x": x, "y": found})
    np.testing.assert_array_equal(found, expected)


def test_constant_guards_disappear() -> None:
    text = """
    func @f(out y: f32[8]) {
      for i in unroll(4) {
        if i < 2 { y[i] = 1.0 }
        if i * 2 == 6 { y[i] = 2.0 } else { y[7] = 3.0 }
      }
    }"""
    printed = print_func(unroll(parse_func(text)))
    assert "if" not in printed
    assert printed.count("y[7] = 3.0") == 3
    assert printed.count("= 1.0") == 2


def test_unknown_and_empty_extents() -> None:
    after = unroll(parse_func("func @f(out y: f32[N]) { for i in unroll(N) { y[i] = 1.0 } }"))
    assert isinstance(after.body, For)
    assert after.body.kind == "serial"
    empty = unroll(parse_func("func @f(out y: f32[4]) { for i in unroll(0) { y[i] = 1.0 } }"))
    run_func(empty, {"y": np.zeros(4, "f4")})


def test_neighbours_share_a_guard() -> None:
    text = """
    func @f(x: f32[8], out y: f32[8]) {
      for o in serial(2) {
        for i in unroll(2) {
          for j in unroll(2) { if o * 4 + i < 5 { y[o * 4 + i * 2 + j] = 1.0 } }
        }
        for k in unroll(2) { if x[0] < 1.0 { y[k] = 2.0 } }
      }
    }"""
    before = parse_func(text)
    after = unroll(before)
    printed = print_func(after)
    assert printed.count("if o <") == 2
    assert printed.count("if x[0]") == 2  # what is stored may change it
    expected, found = np.zeros(8, "f4"), np.zeros(8, "f4")
    run_func(before, {"x": np.zeros(8, "f4"), "y": expected})
    run_func(after, {"x": np.zeros(8, "f4"), "y": found})
    np.testing.assert_array_equal(found, expected)


def test_nested_loops_share_what_mentions_one_of_their_variables() -> None:
    text = """
    func @f(a: f32[3], b: f32[4], out y: f32[12]) {
      for i in unroll(3) {
        for j in unroll(4) {
          y[i * 4 + j] = a[i] * b[j]
        }
      }
    }"""
    before = parse_func(text)
    after = unroll(before)
    found = {id(load) for e in expressions(after.body) for load in loads(e)}
    assert len(found) == 3 + 4
    a, b = np.arange(3, dtype="f4"), np.arange(1, 5, dtype="f4")
    y = np.zeros(12, "f4")
    run_func(after, {"a": a, "b": b, "y": y})
    np.testing.assert_array_equal(y, np.outer(a, b).ravel())


def test_an_extent_that_mentions_an_unrolled_variable_stays_a_loop() -> None:
    text = """
    func @f(out y: f32[6]) {
      for i in unroll(3) {
        for j in unroll(i + 1) { y[i + j] = 1.0 }
      }
    }"""
    after = unroll(parse_func(text))
    assert [str(loop.extent) for loop in loops(after.body)] == ["1", "2", "3"]
    assert {loop.kind for loop in loops(after.body)} == {"serial"}


@pytest.mark.parametrize(
    "index",
    [
        "i * 8 + j * 2 + k",
        "k * 5 - i - j + 3",
        "7 - k - i",
        "i * N + j",
        "(i * 4 + j) // 3 + k",
        "k * 16 + i * 4 - i * 4 + j",
        "min(i + k, 9)",
    ],
)
def test_indices_are_those_that_simplify_gives(index: str) -> None:
    text = f"""
    func @f(x: f32[100], out y: f32[100]) {{
      for k in serial(3) {{ for i in unroll(3) {{ for j in unroll(2) {{
        y[ramp({index}, 1, 4)] = x[{index}] }} }} }}
    }}"""
    copies = [s for s in statements_in(unroll(parse_func(text)).body) if isinstance(s, Store)]
    assert len(copies) == 6
    for n, store in enumerate(copies):
        (value,) = loads(store.value)
        values = {"i": const(n // 2), "j": const(n % 2)}
        expected = simplify(substitute(parse_expr(index), values))
        assert value.indices == (expected,)
        assert store.indices == (Ramp(expected, 1, 4),)
