from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Load, const
from tilewright.core.dtypes import F32, I32, I64, U8, U64, DType
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.tensor.positions import Sites, check_indices, place_of


def _index(dtype: DType = I64) -> Load:
    return Load("x", (const(0),), dtype)


def test_positions_are_counted_from_the_front_and_clamped() -> None:
    (place,), when = place_of([_index()], [const(5)], None)
    assert str(place) == "min(max(select(x[0] < 0, x[0] + 5, x[0]), 0), 4)"
    assert when is None
    (place,), _ = place_of([_index(U8)], [const(5)], None)
    assert str(place) == "min(i64(x[0]), 4)"
    # As an i64 a u64 may be negative.
    (place,), _ = place_of([_index(U64)], [const(5)], None)
    assert str(place) == "min(max(i64(x[0]), 0), 4)"


def test_checks_are_numbered() -> None:
    places, _ = place_of([_index(), _index(I32)], [const(5), const(7)], Sites().check)
    assert "check(x[0], (-5), 5, 0)" in str(places[0])
    assert "check(i64(x[0]), (-7), 7, 1)" in str(places[1])


def test_the_only_element_is_taken_under_a_mask() -> None:
    (place, other), when = place_of([_index(), _index()], [const(1), const(3)], Sites().check)
    assert place is const(0)
    assert "check(" in str(other)
    checked = "check(x[0], (-1), 1, 0)"
    assert str(when) == f"select({checked} < 0, {checked} + 1, {checked}) == 0"


@for_each(("mode", "kind", "rows"), [("wrap", I64, 3), ("raise", F32, 3), ("raise", I64, 0)])
def test_wrong_indices(mode: str, kind: DType, rows: int) -> None:
    with pytest.raises(TypeCheckError):
        check_indices("gather", mode, tensor(F32, rows, 2), tensor(kind, 4), (0,))
