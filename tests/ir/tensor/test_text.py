from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.for_each import for_each
from tests.strategies_loop import ELEMENT_DTYPES, elements
from tilewright.arith.expr import Reduce, Var, const
from tilewright.core.errors import ParseError
from tilewright.ir.tensor.nodes import Program, Stage, Tensor
from tilewright.ir.tensor.text import parse_program, print_program

SOFTMAX = """
tensor @softmax(x: f32[M, N]) -> y, s {
  m: f32[M] = [i] max(k in N) x[i, k]
  e: f32[M, N] = [i, j] exp(x[i, j] - m[i])
  s: f32[M] = [i] sum(k in N) e[i, k]
  y: f32[M, N] = [i, j] e[i, j] / s[i]
}
""".lstrip()


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs of one stage with any body, reduced or not."""
    body = draw(st.sampled_from(ELEMENT_DTYPES).flatmap(elements))
    if draw(st.booleans()):
        axes = tuple((Var(f"r{n}"), const(3)) for n in range(draw(st.integers(1, 2))))
        body = Reduce(draw(st.sampled_from(["sum", "max"])), axes, body)
    inputs = tuple(Tensor(f"x_{d}", d, (Var("N"),)) for d in ELEMENT_DTYPES)
    return Program("p", inputs, (Stage("y", (Var("N"),), ("i",), body),), ("y",))


def test_the_text_of_a_program():
    assert print_program(parse_program(SOFTMAX)) == SOFTMAX


@given(programs())
def test_round_trip(program):
    assert parse_program(print_program(program)) == program


def test_scalars_have_no_axes():
    program = parse_program("tensor @f(x: f32[]) -> y { y: f32[] = [] x[] + 1.0 }")
    assert program.stages[0].axes == ()
    assert parse_program(print_program(program)) == program


@for_each(
    ("before", "after", "message"),
    [
        ("m: f32[M]", "m: f64[M]", "m is declared f64, it is f32"),
        ("- m[i]", "- q[i]", "no buffer named 'q'"),
        ("x: f32[M", "x: float[M", "expected a dtype, found 'float'"),
        ("x: f32[M, N]", "x: f32[M N]", "expected ',', found 'N'"),
        ("}\n", "} }", "unexpected '}' after the end"),
    ],
)
def test_errors(before, after, message):
    with pytest.raises(ParseError) as caught:
        parse_program(SOFTMAX.replace(before, after))
    assert caught.value.message == message
    assert caught.value.loc.line
