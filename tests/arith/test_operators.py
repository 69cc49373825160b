from __future__ import annotations

import math

from tests.for_each import for_each
from tilewright.arith.operators import BINARY, COMBINE, COMPARISONS, DIVISIONS, REDUCTIONS, SHIFTS


@for_each(("a", "b"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (0, 5)])
def test_divisions_round_as_they_are_told(a: int, b: int) -> None:
    assert BINARY["div"](a, b) == math.trunc(a / b)
    assert BINARY["floordiv"](a, b) == math.floor(a / b)
    assert BINARY["div"](a, b) * b + BINARY["rem"](a, b) == a
    assert BINARY["floordiv"](a, b) * b + BINARY["mod"](a, b) == a


def test_the_tables_name_operators() -> None:
    assert {*COMPARISONS, *DIVISIONS, *SHIFTS, *COMBINE.values()} <= BINARY.keys()
    assert {*REDUCTIONS} == COMBINE.keys()
