"""What every task scheduler must do, on tasks whose times are known beforehand."""

from __future__ import annotations

import math

import pytest

from tests.for_each import for_each
from tilewright.tune.task_scheduler.ansor import AnsorScheduler
from tilewright.tune.task_scheduler.gradient import GradientScheduler
from tilewright.tune.task_scheduler.table import TASK_SCHEDULERS
from tilewright.tune.task_scheduler.task_scheduler import Task, TaskScheduler

ALL = ["round-robin", "ansor", "gradient"]
# Best times after each batch: one task has much to gain, one nothing, one is of no weight.
CURVES = (
    [8.0, 6.0, 4.5, 3.5, 2.8, 2.3, 2.0],
    [5.0] * 7,
    [0.09, 0.05, 0.03, 0.02, 0.02, 0.01, 0.01],
)


def _play(scheduler: TaskScheduler, batches: int) -> list[int]:
    order: list[int] = []
    for _ in range(batches):
        number = scheduler.next_task()
        if number is None:
            break
        curve = CURVES[number]
        done = order.count(number)
        scheduler.observe(number, curve[done], finished=done + 1 == len(curve))
        order.append(number)
    return order


def _tasks() -> list[Task]:
    return [Task("steep"), Task("flat"), Task("small")]


def test_all_are_tested() -> None:
    assert set(TASK_SCHEDULERS.names()) == set(ALL)


@for_each("name", ALL)
def test_every_task_comes_first_once_and_all_end(name: str) -> None:
    scheduler = TASK_SCHEDULERS.get(name)(_tasks())
    assert scheduler.latency == math.inf
    order = _play(scheduler, 100)
    assert set(order[:3]) == {0, 1, 2}
    assert len(order) == 21
    assert scheduler.next_task() is None
    assert scheduler.latency == 2.0 + 5.0 + 0.01


def test_round_robin() -> None:
    assert _play(TASK_SCHEDULERS.get("round-robin")(_tasks()), 7) == [0, 1, 2, 0, 1, 2, 0]


def test_the_gradient_beats_round_robin() -> None:
    ends = {}
    for name in ALL:
        scheduler = TASK_SCHEDULERS.get(name)(_tasks())
        _play(scheduler, 10)
        ends[name] = scheduler.latency
    assert max(ends["gradient"], ends["ansor"]) < ends["round-robin"] - 0.5


def test_weight_counts() -> None:
    heavy = GradientScheduler([Task("a"), Task("b", weight=10.0)])
    for number in (0, 1):
        heavy.observe(number, 1.0)
    assert heavy.next_task() == 1


def test_a_task_behind_its_kind_has_more_to_hope_for() -> None:
    scheduler = AnsorScheduler([Task("fast", flops=8.0, kind="conv"), Task("slow", kind="conv")])
    for _ in range(3):
        scheduler.observe(0, 1.0)
        scheduler.observe(1, 1.0)
    assert scheduler.gain(scheduler.tasks[0]) < scheduler.gain(scheduler.tasks[1])


def test_the_fastest_of_its_kind_still_has_hope() -> None:
    scheduler = AnsorScheduler([Task("large", flops=8.0, kind="conv"), Task("b", kind="conv")])
    for _ in range(2):
        scheduler.observe(0, 1.0)
        scheduler.observe(1, 0.2)
    assert scheduler.gain(scheduler.tasks[0]) == pytest.approx(0.8 * 1.0 / 2)


def test_no_task_starves_by_one_that_gains_nothing() -> None:
    """One of four times the latency gets twice the batches."""
    scheduler = GradientScheduler([Task("heavy", weight=4.0), Task("light")])
    order = []
    for _ in range(30):
        order.append(scheduler.choose([0, 1]))
        scheduler.observe(order[-1], 1.0)
    assert order.count(0) == 2 * order.count(1)


def test_what_counts_is_the_gain_for_the_time_that_batches_take() -> None:
    """Batches of one of two equal tasks take nine times as long: it gets a third of them."""
    scheduler = GradientScheduler([Task("long"), Task("short")])
    order = []
    for _ in range(40):
        order.append(scheduler.choose([0, 1]))
        scheduler.observe(order[-1], 1.0, seconds=(9.0, 1.0)[order[-1]])
    assert order.count(1) == 3 * order.count(0)


def test_without_a_clock_all_batches_take_the_same() -> None:
    scheduler = GradientScheduler([Task("timed"), Task("not timed")])
    scheduler.observe(0, 1.0, seconds=9.0)
    scheduler.observe(1, 1.0)
    assert scheduler.cost(scheduler.tasks[1]) == scheduler.cost(scheduler.tasks[0]) == 9.0
    assert GradientScheduler([Task("a")]).cost(scheduler.tasks[1]) == 1.0


def test_a_task_that_only_fails_does_not_take_everything() -> None:
    scheduler = GradientScheduler([Task("bad"), Task("good")])
    scheduler.observe(0, math.inf)
    scheduler.observe(1, 1.0)
    assert scheduler.next_task() == 1


def test_the_best_time_never_rises() -> None:
    scheduler = GradientScheduler([Task("a")])
    scheduler.observe(0, 1.0)
    scheduler.observe(0, 2.0)
    assert scheduler.tasks[0].now == 1.0


def test_a_task_at_its_roof_waits_for_one_that_can_gain() -> None:
    """Both take a second, and one could take a tenth of that: it gets most of the batches."""
    scheduler = GradientScheduler(
        [Task("at its roof", least_seconds=0.95), Task("far", least_seconds=0.1)]
    )
    order = []
    for _ in range(40):
        order.append(scheduler.choose([0, 1]))
        scheduler.observe(order[-1], 1.0)
    assert order[:2] == [0, 1]  # those nobody knows come first
    assert order.count(1) > 3 * order.count(0)


def test_roofs_are_not_trusted_wholly() -> None:
    scheduler = GradientScheduler([Task("above its roof", least_seconds=2.0)])
    scheduler.observe(0, 1.0)
    assert scheduler.gain(scheduler.tasks[0]) > 0
