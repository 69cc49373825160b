from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Broadcast, Load, Reduce, Var, const
from tilewright.core.dtypes import F32
from tilewright.core.errors import VerifyError
from tilewright.ir.tensor.nodes import Program, Stage, Tensor
from tilewright.ir.tensor.text import parse_program
from tilewright.ir.tensor.verify import verify_program

GOOD = """
tensor @softmax(x: f32[M, N]) -> y {
  m: f32[M] = [i] max(k in N) x[i, k]
  e: f32[M, N] = [i, j] exp(x[i, j] - m[i])
  s: f32[M] = [i] sum(k in N) e[i, k]
  y: f32[M, N] = [i, j] e[i, j] / s[i]
}
"""
WRONG = {
    "no-output": ("-> y", "-> z"),
    "rank": ("- m[i]", "- m[i, j]"),
    "axes": ("[i, j] exp", "[i] exp"),
    "axis-of-another": ("x[i, k]", "x[j, k]"),
    "axis-twice": ("[i, j] exp", "[i, i] exp"),
    "axis-is-reduced": ("[i] max(k", "[i] max(i"),
    "inner-reduction": ("exp(x[i, j]", "exp(sum(q in N) x[i, q]"),
    "dtype": ("/ s[i]", "/ i"),
    "stage-twice": (
        "  s: f32[M] = [i] sum(k in N) e[i, k]",
        "  e: f32[M] = [i] 1.0\n  s: f32[M] = [i] 1.0",
    ),
    "axis-in-shape": ("e: f32[M, N]", "e: f32[M, j]"),
    "extent-dtype": ("sum(k in N)", "sum(k in 1.5)"),
}


def test_a_good_program():
    verify_program(parse_program(GOOD))


@pytest.mark.parametrize("wrong", WRONG)
def test_broken_rules(wrong, golden):
    before, after = WRONG[wrong]
    assert before in GOOD
    with pytest.raises(VerifyError) as caught:
        verify_program(parse_program(GOOD.replace(before, after, 1)))
    golden(str(caught.value), wrong)


def stage_of(body) -> Program:
    x = Tensor("x", F32, (const(4),))
    return Program("p", (x,), (Stage("y", (const(4),), ("i",), body),), ("y",))


@for_each(
    ("body", "code"),
    [
        (Load("later", (Var("i"),), F32), "expr.buffer"),
        (Broadcast(const(1, F32), 4), "tensor.vector"),
        (Reduce("sum", (), const(1, F32)), "tensor.reduction"),
    ],
)
def test_bodies_that_have_no_text(body, code):
    with pytest.raises(VerifyError) as caught:
        verify_program(stage_of(body))
    assert caught.value.code == code


def test_a_program_has_an_output():
    with pytest.raises(VerifyError, match="no output"):
        verify_program(Program("p", (), (), ()))
