from __future__ import annotations

import pytest

from tilewright.arith.checked_index import CheckedIndex, is_outside
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Load, Var, const, maximum, minimum
from tilewright.arith.simplify import simplify
from tilewright.arith.text import parse_expr, print_expr
from tilewright.arith.walk import substitute
from tilewright.core.dtypes import I64

PLACE, N = Var("i"), Var("N")


def test_text() -> None:
    checked = CheckedIndex(Load("x", (PLACE,), I64), N, 3)
    assert print_expr(checked) == "check(x[i], N, 3)"
    assert parse_expr(print_expr(checked), {"x": I64}) is checked


def test_its_operands_are_rewritten() -> None:
    checked = CheckedIndex(Load("x", (PLACE + 0 * N,), I64), N, 0)
    assert str(substitute(checked, {"i": const(2), "N": const(8)})) == "check(x[2], 8, 0)"


def test_a_check_survives_simplification() -> None:
    checked = CheckedIndex(Load("x", (PLACE,), I64), const(9), 0)
    place = minimum(maximum(checked, 0), 8)
    assert "check(x[i], 9, 0)" in str(simplify(place * 1 + 0, {"i": const(4)}))


@pytest.mark.parametrize("index", range(-2, 6))
def test_what_lies_outside(index: int) -> None:
    assert evaluate(is_outside(PLACE, N), {"i": index, "N": 4}) == (not 0 <= index < 4)
