from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.arith import interval
from tilewright.arith.interval import NATURAL, TRUTH, UNBOUNDED, Interval
from tilewright.arith.operators import BINARY
from tilewright.core.dtypes import BOOL, F32, I8, I64, U8, U64


@st.composite
def members(draw: st.DrawFn) -> tuple[Interval, int]:
    """An interval, maybe without ends, and a number in it."""
    low, value, high = sorted(draw(st.integers(-40, 40)) for _ in range(3))
    return Interval(draw(st.sampled_from((low, None))), draw(st.sampled_from((high, None)))), value


@pytest.mark.parametrize("op", sorted(BINARY))
@given(a=members(), b=members())
def test_results_lie_in_the_interval(
    op: str, a: tuple[Interval, int], b: tuple[Interval, int]
) -> None:
    (over_x, x), (over_y, y) = a, b
    try:
        value = BINARY[op](x, y)
    except (ZeroDivisionError, ValueError):
        return
    assert interval.BINARY[op](over_x, over_y).contains(value)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "min", "max", "floordiv"])
@given(st.integers(-9, 9), st.integers(0, 9), st.integers(1, 9), st.integers(0, 9))
def test_ends_are_reached(op: str, low: int, width: int, least: int, more: int) -> None:
    a, b = Interval(low, low + width), Interval(least, least + more)
    values = [
        BINARY[op](x, y)
        for x in range(low, low + width + 1)
        for y in range(least, least + more + 1)
    ]
    assert interval.BINARY[op](a, b) == Interval(min(values), max(values))


@given(members(), st.integers(-9, 9))
def test_scaling(a: tuple[Interval, int], factor: int) -> None:
    over, value = a
    assert interval.scale(over, factor).contains(value * factor)
    assert interval.negate(over) == interval.scale(over, -1)


@given(members(), members())
def test_joining(a: tuple[Interval, int], b: tuple[Interval, int]) -> None:
    joined = interval.join(a[0], b[0])
    assert a[0].within(joined)
    assert b[0].within(joined)


def test_numbers_too_large_for_floats_stay_exact() -> None:
    big = (1 << 62) + 1
    assert interval.multiply(Interval(big, big), Interval(3, 3)) == Interval(3 * big, 3 * big)
    assert interval.minimum(Interval(big, None), Interval(big + 1, big + 2)).lo == big


def test_divisors_are_not_zero() -> None:
    assert interval.floordiv(Interval(0, 9), NATURAL) == Interval(0, 9)
    assert interval.floordiv(Interval(0, 9), Interval(-1, 1)) == UNBOUNDED
    assert interval.modulo(Interval(0, 9), NATURAL) == Interval(0, 9)
    assert interval.modulo(UNBOUNDED, Interval(8, 8)) == Interval(0, 7)
    assert interval.modulo(Interval(17, 19), Interval(8, 8)) == Interval(1, 3)


def test_what_elements_can_be() -> None:
    assert interval.of_dtype(U8) == Interval(0, 255)
    assert interval.of_dtype(I8) == Interval(-128, 127)
    assert interval.of_dtype(BOOL) == TRUTH
    assert interval.of_dtype(U64) == NATURAL
    assert interval.of_dtype(I64) == interval.of_dtype(F32) == UNBOUNDED


def test_points() -> None:
    assert Interval(3, 3).point == 3
    assert Interval(3, 4).point is None
    assert UNBOUNDED.point is None
    assert UNBOUNDED.contains(5)
    assert not Interval(6, None).contains(5)
    assert not UNBOUNDED.within(NATURAL)
