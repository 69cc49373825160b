from __future__ import annotations

from tests.for_each import for_each
from tilewright.arith.checked_index import CheckedIndex
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Load, Var, const, maximum, minimum
from tilewright.arith.simplify import simplify
from tilewright.arith.text import parse_expr, print_expr
from tilewright.arith.walk import substitute
from tilewright.core.dtypes import I64

PLACE, N = Var("i"), Var("N")


def test_text() -> None:
    checked = CheckedIndex(Load("x", (PLACE,), I64), -N, N, 3)
    assert print_expr(checked) == "check(x[i], -(N), N, 3)"
    assert parse_expr(print_expr(checked), {"x": I64}) is checked


def test_its_operands_are_rewritten() -> None:
    checked = CheckedIndex(Load("x", (PLACE + 0 * N,), I64), -N, N, 0)
    assert str(substitute(checked, {"i": const(2), "N": const(8)})) == "check(x[2], (-8), 8, 0)"


def test_a_check_survives_simplification() -> None:
    checked = CheckedIndex(Load("x", (PLACE,), I64), const(0), const(9), 0)
    place = minimum(maximum(checked, 0), 8)
    assert "check(x[i], 0, 9, 0)" in str(simplify(place * 1 + 0, {"i": const(4)}))


@for_each("index", range(-4, 4))
def test_what_lies_outside(index: int) -> None:
    assert evaluate(CheckedIndex(PLACE, -N, N, 0).is_outside, {"i": index, "N": 2}) == (
        not -2 <= index < 2
    )
