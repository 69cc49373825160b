from __future__ import annotations

import math

import pytest

from tilewright.driver.tuning.budget import (
    COMPARISON_SECONDS,
    COMPARISONS,
    FINAL_SHARE,
    LATER_SECONDS,
    LATER_SHARE,
    MODEL_PART,
    SMALL_BATCH,
    Budget,
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
    budget = Budget(40, None, 16, clock)
    budget.begin(20)
    assert [budget.allowed(done, 0) for done in (20, 30, 40, 50)] == [16, 10, 0, -10]
    assert budget.left(20) == math.inf
    clock.now += 10
    assert budget.left(30) == 10.0


def test_a_budget_ends_in_time(clock: Clock) -> None:
    budget = Budget(None, 100.0, 16, clock)
    clock.now += 10
    budget.begin(5)
    assert budget.elapsed == 10.0
    assert budget.allowed(5, 0) == SMALL_BATCH
    clock.now += 8
    assert budget.allowed(9, 0) == 7  # a share of the budget at two seconds each
    assert budget.left(9) == 82.0
    clock.now += 78
    assert budget.allowed(48, 0) == 2
    clock.now += 4
    assert budget.allowed(50, 0) == 0
    assert budget.left(50) == 0.0
    assert budget.is_late
    assert not Budget(5, None, 16, clock).is_late


def test_comparisons_have_their_share_of_a_budget(clock: Clock) -> None:
    budget = Budget(None, 100.0, 16, clock)
    clock.now += 100 * (1 - FINAL_SHARE) + 1
    assert budget.allowed(10, 0) > 0
    assert budget.allowed(10, 50) <= 0


def test_the_model_has_its_share_of_a_budget(clock: Clock) -> None:
    budget = Budget(None, 100.0, 16, clock)
    clock.now += 100 - COMPARISONS * COMPARISON_SECONDS - 2
    assert budget.allowed(100, 0) > 0
    assert budget.allowed(100, 1) <= 0  # its comparison takes longer than what is left beside it
    assert not budget.is_late
    clock.now += 3
    assert budget.is_late
    short = Budget(None, 10.0, 16, clock)
    clock.now += 10 * (1 - FINAL_SHARE) - 1
    assert not short.is_late


def test_a_model_is_compared_for_longer_where_there_is_time() -> None:
    assert Budget(8, None, 16).comparison_seconds < COMPARISON_SECONDS
    assert Budget(None, 120.0, 16).comparison_seconds == COMPARISON_SECONDS
    assert Budget(None, 600.0, 16).comparison_seconds == pytest.approx(20.0)


def test_comparing_a_model_keeps_to_a_short_budget() -> None:
    for seconds in (1.0, 10.0, 60.0):
        taken = COMPARISONS * Budget(None, seconds, 16).comparison_seconds
        assert taken <= FINAL_SHARE * seconds


def test_whichever_ends_first(clock: Clock) -> None:
    budget = Budget(3, 100.0, 16, clock)
    assert budget.allowed(0, 0) == 3
    clock.now += 101
    assert budget.allowed(1, 0) <= 0


def test_slow_trials_come_a_few_at_a_time(clock: Clock) -> None:
    budget = Budget(None, 100.0, 16, clock)
    clock.now += 20
    assert budget.allowed(1, 0) == SMALL_BATCH
    clock.now += 20
    assert budget.allowed(1, 0) == 1


def test_comparing_after_trials_alone_ends_too(clock: Clock) -> None:
    budget = Budget(8, None, 16, clock)
    clock.now += 10
    assert not budget.is_late
    budget.begin_comparisons()
    assert budget.comparison_seconds == MODEL_PART * LATER_SECONDS
    clock.now += LATER_SECONDS * (1 - COMPARISONS * MODEL_PART) - 1
    assert not budget.is_late
    clock.now += 2
    assert budget.is_late
    assert not budget.is_over
    clock.now += LATER_SECONDS
    assert budget.is_over
    long = Budget(512, None, 16, clock)
    clock.now += 1000
    long.begin_comparisons()
    assert long.comparison_seconds == COMPARISON_SECONDS
    clock.now += LATER_SHARE * 1000 - 1
    assert not long.is_over
