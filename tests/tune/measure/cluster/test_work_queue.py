from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.for_each import for_each
from tests.tune.measure.cluster.fake_cluster import FakeCluster, FakeConnection
from tilewright.tune.measure.cluster.work_queue import WorkQueue, distribute


def shared(
    count: int, batch: int, *connections: FakeConnection, timeout: float = 60.0
) -> tuple[WorkQueue, list[int], dict[str, str]]:
    """What is left, which pieces were answered in which order, and who was lost why."""
    answered: list[int] = []
    lost: dict[str, str] = {}
    eligible = list(connections)

    def begin(connection: Any, numbers: Sequence[int]) -> None:
        assert len(numbers) <= batch
        connection.begin("measure", "", None, [f"{number}" for number in numbers], 1.0)

    def on_answer(connection: Any, number: int, message: Any) -> None:
        assert message["times"] == [number]
        answered.append(number)

    def on_lost(connection: Any, why: str) -> None:
        eligible.remove(connection)
        lost[connection.name] = why

    queue = WorkQueue(count, batch, begin, on_answer, on_lost)
    distribute(FakeCluster(*connections), lambda: list(eligible), queue, timeout)
    return queue, answered, lost


@for_each("count", [0, 1, 2, 5, 16])
@for_each("batch", [1, 2, 7])
def test_everything_is_answered_once(count: int, batch: int) -> None:
    connections = [FakeConnection(f"{n}") for n in range(3)]
    queue, answered, lost = shared(count, batch, *connections)
    assert sorted(answered) == list(range(count))
    assert not queue.waiting
    assert not lost
    assert sum(bool(connection.calls) for connection in connections) == min(count, 3)


@for_each("goes_after", range(12))
def test_one_may_go_at_any_moment(goes_after: int) -> None:
    queue, answered, lost = shared(
        10, 4, FakeConnection("a", goes_after=goes_after), FakeConnection("b")
    )
    assert Counter(answered) == Counter(range(10))
    assert not queue.waiting
    assert lost in ({}, {"a": "its machine is lost"})


def test_what_nobody_answered_is_left() -> None:
    connections = (FakeConnection("a", goes_after=2), FakeConnection("b", goes_after=4))
    queue, answered, lost = shared(10, 3, *connections)
    assert sorted([*answered, *queue.waiting]) == list(range(10))
    assert len(answered) == 5  # the fourth that b says is that it has nothing more to say
    assert lost.keys() == {"a", "b"}
    assert list(shared(3, 1)[0].waiting) == [0, 1, 2]


def test_one_with_a_problem_is_lost() -> None:
    _, answered, lost = shared(6, 2, FakeConnection("a", problem="no room"), FakeConnection("b"))
    assert sorted(answered) == list(range(6))
    assert lost == {"a": "no room"}


def test_one_that_says_nothing_is_lost() -> None:
    _, answered, lost = shared(
        4, 2, FakeConnection("a", silent=True), FakeConnection("b"), timeout=0.05
    )
    assert sorted(answered) == list(range(4))
    assert lost["a"] == "it said nothing for 0 s"
