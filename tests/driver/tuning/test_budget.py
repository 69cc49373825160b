from __future__ import annotations

import math

import pytest

from tilewright.driver.tuning.budget import (
    FINAL_SHARE,
    MEETING_SECONDS,
    MEETINGS,
    SMALL_BATCH,
    Pace,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_trials_are_counted_in_all(clock: Clock) -> None:
    pace = Pace(40, None, 16, clock)
    pace.begin(20)
    assert [pace.allowed(done, 0) for done in (20, 30, 40, 50)] == [16, 10, 0, -10]
    assert pace.left(20) == math.inf
    clock.now += 10
    assert pace.left(30) == 10.0


def test_a_budget_ends_in_time(clock: Clock) -> None:
    pace = Pace(None, 100.0, 16, clock)
    clock.now += 10
    pace.begin(5)
    assert pace.elapsed == 10.0
    assert pace.allowed(5, 0) == SMALL_BATCH
    clock.now += 8
    assert pace.allowed(9, 0) == 7  # a share of the budget at two seconds each
    assert pace.left(9) == 82.0
    clock.now += 78
    assert pace.allowed(48, 0) == 2
    clock.now += 4
    assert pace.allowed(50, 0) == 0
    assert pace.left(50) == 0.0
    assert pace.is_late
    assert not Pace(5, None, 16, clock).is_late


def test_comparisons_have_their_share_of_a_budget(clock: Clock) -> None:
    pace = Pace(None, 100.0, 16, clock)
    clock.now += 100 * (1 - FINAL_SHARE) + 1
    assert pace.allowed(10, 0) > 0
    assert pace.allowed(10, 50) <= 0


def test_the_model_has_its_share_of_a_budget(clock: Clock) -> None:
    pace = Pace(None, 100.0, 16, clock)
    clock.now += 100 - MEETINGS * MEETING_SECONDS - 2
    assert pace.allowed(100, 0) > 0
    assert pace.allowed(100, 1) <= 0  # its comparison takes longer than what is left beside it
    assert not pace.is_late
    clock.now += 3
    assert pace.is_late
    short = Pace(None, 10.0, 16, clock)
    clock.now += 10 * (1 - FINAL_SHARE) - 1
    assert not short.is_late


def test_a_model_is_compared_for_longer_where_there_is_time() -> None:
    assert Pace(8, None, 16).meeting_seconds == MEETING_SECONDS
    assert Pace(None, 60.0, 16).meeting_seconds == MEETING_SECONDS
    assert Pace(None, 600.0, 16).meeting_seconds == pytest.approx(20.0)


def test_whichever_ends_first(clock: Clock) -> None:
    pace = Pace(3, 100.0, 16, clock)
    assert pace.allowed(0, 0) == 3
    clock.now += 101
    assert pace.allowed(1, 0) <= 0


def test_slow_trials_come_a_few_at_a_time(clock: Clock) -> None:
    pace = Pace(None, 100.0, 16, clock)
    clock.now += 20
    assert pace.allowed(1, 0) == SMALL_BATCH
    clock.now += 20
    assert pace.allowed(1, 0) == 1
