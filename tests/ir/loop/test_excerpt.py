from __future__ import annotations

from tilewright.ir.loop.excerpt import excerpt
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import find_block, find_loop

FUNC = parse_func("""
func @f(out C: f32[8]) {
  for y.1 in serial(8) {
    block "C" [v: S(8) = y.1] writes C[v]
      where y.1 < 4
      { C[v] = 1.0 }
  }
}""")


def test_a_word_of_a_statement():
    assert excerpt(FUNC, find_loop(FUNC, "y.1"), "y.1") == (
        " 2 |   for y.1 in serial(8) {",
        "   |       ^^^",
    )


def test_the_line_of_a_statement_that_has_the_word():
    first, marks = excerpt(FUNC, find_block(FUNC, "C"), "y.1 < 4")
    assert first == " 4 |       where y.1 < 4"
    assert marks == "   |             ^^^^^^^"


def test_the_head_stands_for_the_function():
    assert excerpt(FUNC, None)[0] == " 1 | func @f(out C: f32[8]) {"
