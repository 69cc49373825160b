from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.arith.expr import TRUE, Binary, Unary, Var, const, maximum, minimum
from tilewright.arith.isl import NotAffineError, ParamSpace, Relation

M, N, i, j, t = (Var(name) for name in ("M", "N", "i", "j", "t"))
SPACE = ParamSpace(("M", "N"))


def _relation(*conditions, image=(t,)) -> Relation:
    return SPACE.relation(("i",), image, conditions)


def test_sizes_are_at_least_one() -> None:
    assert _relation(M < 1).is_empty()
    assert not _relation(M < 2).is_empty()


def test_division_remainder_and_choice() -> None:
    half = _relation(t.eq(i // 2), i % 2 < 1, i.eq(6))
    assert half.sample()[1:] == ([6], [3])
    least = _relation(t.eq(minimum(i, 4) + maximum(i, 4)), i.eq(9))
    assert least.sample()[2] == [13]


def test_conditions() -> None:
    odd = _relation(TRUE, Unary("not", i < 3), Binary("or", i.eq(1), i.eq(5)), t.eq(i))
    assert odd.sample()[1] == [5]
    assert _relation(i.ne(i)).is_empty()
    assert _relation(Binary("lt", const(2), const(1))).is_empty()
    assert _relation(const(1) < 0).is_empty()


@for_each("index", [i * M, i // M, i % N, i // -2, Var("unknown")])
def test_what_isl_cannot_express(index) -> None:
    with pytest.raises(NotAffineError):
        _relation(t.eq(index))
    with pytest.raises(NotAffineError):
        _relation(Var("b", TRUE.dtype))


def test_orders() -> None:
    time = SPACE.relation(("i",), (t, const(0)), [t.eq(i), const(0) <= i, i < M])
    before = time.before(time)
    sizes, first, second = before.sample()
    assert first < second
    assert sizes[0] > second[0]
    assert (before & time.not_before(time)).is_empty()


def test_points_in_common() -> None:
    even = _relation(t.eq(i * 2))
    same = even.meets(even)
    assert (same - SPACE.relation(("i",), (i,), [])).is_empty()


def test_first_and_missing() -> None:
    many = _relation(i <= t, t < 10, const(0) <= i)
    assert many.first().prefix(1).sample()[1] == many.first().sample()[1]
    assert (many.first() - _relation(t.eq(i), i < 10)).is_empty()
    few = _relation(t.eq(i), const(0) <= i, i < 5)
    assert many.from_missing(few).sample()[1][0] >= 5
    assert not many.to_present(few).is_empty()
    assert few.from_missing(many).is_empty()
