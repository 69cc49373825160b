from __future__ import annotations

from hypothesis import given

from tests.strategies_loop import funcs
from tilewright.arith.expr import Binary, Load, Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.loop import text
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Region, Seq, Store
from tilewright.ir.loop.text import (
    parse_func,
    print_func,
    print_lines,
    print_region,
    print_stmt,
    stmt_excerpt,
)
from tilewright.ir.loop.walk import find_block, find_loop

EXAMPLE = text.__doc__[text.__doc__.index("    func") : text.__doc__.index("Bare braces")]


def test_the_example_of_the_grammar(golden):
    func = parse_func(EXAMPLE)
    golden(print_func(func))
    assert parse_func(print_func(func)) == func


@given(funcs())
def test_round_trip(func):
    assert parse_func(print_func(func)) == func


def test_an_update_is_short_only_where_it_reads_what_it_writes():
    c = Load("C", (Var("i"),), F32)
    x = Load("x", (Var("i"),), F32)
    assert print_stmt(Store("C", (Var("i"),), Binary("add", c, x))) == "C[i] += x[i]"
    assert print_stmt(Store("C", (Var("i"),), Binary("add", x, c))) == "C[i] = x[i] + C[i]"
    assert print_stmt(Store("C", (Var("j"),), Binary("add", c, x))) == "C[j] = C[i] + x[i]"
    masked = Store("C", (Var("i"),), Binary("add", c, x), Binary("lt", Var("i"), const(4)))
    assert print_stmt(masked) == "C[i ? i < 4] = C[i] + x[i]"


def test_the_scope_of_an_allocation_ends_with_its_braces():
    t = Buffer("T", F32, (const(4),), "local")
    store = Store("T", (const(0),), const(1, F32))
    last = Seq((store, Alloc(t, Seq((store, store)))))
    assert print_stmt(last) == "T[0] = 1.0\nalloc T: f32[4] @local\nT[0] = 1.0\nT[0] = 1.0"
    early = Seq((Alloc(t, store), store))
    assert print_stmt(early) == "{\n  alloc T: f32[4] @local\n  T[0] = 1.0\n}\nT[0] = 1.0"


def test_a_region_whose_extent_is_called_like_a_dtype():
    region = Region("A", ((Var("i"), Var("i8")), (Var("j"), const(1))))
    assert print_region(region) == "A[i : (i8), j]"


def test_long_headers_are_broken():
    params = tuple(Buffer(f"a_long_parameter_name_{n}", F32, (Var("N"),)) for n in range(4))
    func = Func("f", params, (params[-1].name,), Seq(()))
    assert print_func(func).splitlines()[4] == "  out a_long_parameter_name_3: f32[N],"
    assert parse_func(print_func(func)) == func


def test_lines_know_their_statement():
    store = Store("C", (Var("i"),), const(1, F32))
    loop = For("i", const(4), "serial", store)
    func = Func("f", (Buffer("C", F32, (const(4),)),), ("C",), loop)
    owners = [owner for _, owner in print_lines(func)]
    assert owners == [None, loop, store, loop, None]


FUNC = parse_func("""
func @f(out C: f32[8]) {
  for y.1 in serial(8) {
    block "C" [v: S(8) = y.1] writes C[v]
      where y.1 < 4
      { C[v] = 1.0 }
  }
}""")


def test_a_word_of_a_statement():
    assert stmt_excerpt(FUNC, find_loop(FUNC, "y.1"), "y.1") == (
        " 2 |   for y.1 in serial(8) {",
        "   |       ^^^",
    )


def test_the_line_of_a_statement_that_has_the_word():
    first, marks = stmt_excerpt(FUNC, find_block(FUNC, "C"), "y.1 < 4")
    assert first == " 4 |       where y.1 < 4"
    assert marks == "   |             ^^^^^^^"


def test_the_head_stands_for_the_function():
    assert stmt_excerpt(FUNC, None)[0] == " 1 | func @f(out C: f32[8]) {"
