from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.tune.measure.cluster.fake_cluster import FakeCluster, FakeLink
from tilewright.tune.measure.cluster.work_queue import Work, share


def shared(
    count: int, portion: int, *links: FakeLink, patience: float = 60.0
) -> tuple[Work, list[int], dict[str, str]]:
    """What is left, which pieces were answered in which order, and who was lost why."""
    answered: list[int] = []
    lost: dict[str, str] = {}
    able = list(links)

    def begin(link: Any, numbers: Sequence[int]) -> None:
        assert len(numbers) <= portion
        link.begin("measure", "", None, [f"{number}" for number in numbers], 1.0)

    def told(link: Any, number: int, message: Any) -> None:
        assert message["times"] == [number]
        answered.append(number)

    def lose(link: Any, why: str) -> None:
        able.remove(link)
        lost[link.name] = why

    work = Work(count, portion, begin, told, lose)
    share(FakeCluster(*links), lambda: list(able), work, patience)
    return work, answered, lost


@pytest.mark.parametrize("count", [0, 1, 2, 5, 16])
@pytest.mark.parametrize("portion", [1, 2, 7])
def test_everything_is_answered_once(count: int, portion: int) -> None:
    links = [FakeLink(f"{n}") for n in range(3)]
    work, answered, lost = shared(count, portion, *links)
    assert sorted(answered) == list(range(count))
    assert not work.waiting
    assert not lost
    assert sum(bool(link.calls) for link in links) == min(count, 3)


@pytest.mark.parametrize("goes_after", range(12))
def test_one_may_go_at_any_moment(goes_after: int) -> None:
    work, answered, lost = shared(10, 4, FakeLink("a", goes_after=goes_after), FakeLink("b"))
    assert Counter(answered) == Counter(range(10))
    assert not work.waiting
    assert lost in ({}, {"a": "its machine is gone"})


def test_what_nobody_answered_is_left() -> None:
    links = (FakeLink("a", goes_after=2), FakeLink("b", goes_after=4))
    work, answered, lost = shared(10, 3, *links)
    assert sorted([*answered, *work.waiting]) == list(range(10))
    assert len(answered) == 5  # the fourth that b says is that it has nothing more to say
    assert lost.keys() == {"a", "b"}
    assert list(shared(3, 1)[0].waiting) == [0, 1, 2]


def test_one_with_a_problem_is_lost() -> None:
    _, answered, lost = shared(6, 2, FakeLink("a", problem="no room"), FakeLink("b"))
    assert sorted(answered) == list(range(6))
    assert lost == {"a": "no room"}


def test_one_that_says_nothing_is_lost() -> None:
    _, answered, lost = shared(4, 2, FakeLink("a", silent=True), FakeLink("b"), patience=0.05)
    assert sorted(answered) == list(range(4))
    assert lost["a"] == "it said nothing for 0 s"
