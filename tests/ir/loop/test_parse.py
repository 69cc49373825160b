from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.core.dtypes import F32
from tilewright.core.errors import ParseError
from tilewright.ir.loop.nodes import For, Seq
from tilewright.ir.loop.parse import parse_func, parse_stmt

HEAD = "func @f(A: f32[4], out C: f32[4]) {\n"


def test_several_loops_in_one_line():
    nest = parse_stmt("for i, j, k in serial(M, N, 4) { C[i] = 1.0 }", {"C": F32})
    names = []
    while isinstance(nest, For):
        names.append((nest.name, str(nest.extent)))
        nest = nest.body
    assert names == [("i", "M"), ("j", "N"), ("k", "4")]


def test_nothing_is_an_empty_sequence():
    assert parse_stmt("") == Seq(())
    assert parse_func("func @f() { }").body == Seq(())


def test_keywords_can_name_buffers():
    func = parse_func("func @f(if: f32[1], out alloc: f32[1]) { alloc[0] = if[0] }")
    assert func.outputs == ("alloc",)


@for_each(
    ("body", "where", "message"),
    [
        ("  C[0] = A[0\n}", "3:1", "expected ']', found '}'"),
        ("  C[0] = D[0]\n}", "2:12", "no buffer named 'D'"),
        ("  for i in serial(4, 5) {}\n}", "2:25", "1 loops have 2 extents"),
        ("  loop i\n}", "2:3", "expected a statement, found 'loop'"),
        ("  C[0] = 1.0", "2:13", "expected a statement, found 'the end'"),
        ("}\n}", "3:1", "unexpected '}' after the end"),
        ("  block C [] { }\n}", "2:9", "expected a string, found 'C'"),
        ("  alloc T: f99[4]\n}", "2:12", "expected a dtype, found 'f99'"),
    ],
)
def test_errors_say_where(body, where, message):
    with pytest.raises(ParseError) as caught:
        parse_func(HEAD + body, "x.loops")
    assert caught.value.message == message
    assert str(caught.value.loc) == f"x.loops:{where}"


def test_a_layout_names_dimensions():
    with pytest.raises(ParseError, match="expected a dimension like d0, found 'x'"):
        parse_func("func @f(A: f32[4]) layout A = pack [4] -> [x] { }")
