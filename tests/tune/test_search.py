from __future__ import annotations

from random import Random

from tests.tune.spaces import measure, smooth
from tilewright.tune.candidate import Result
from tilewright.tune.search import search, search_tasks
from tilewright.tune.space.knobs import KnobSpace
from tilewright.tune.strategy.evolutionary import Evolutionary
from tilewright.tune.strategy.random import RandomSearch
from tilewright.tune.task_scheduler.gradient import GradientScheduler
from tilewright.tune.task_scheduler.round_robin import RoundRobin
from tilewright.tune.task_scheduler.task_scheduler import Task


def test_as_many_trials_as_asked_for_in_batches() -> None:
    sizes: list[int] = []

    def noting(candidates: list) -> list[Result]:
        sizes.append(len(candidates))
        return measure(candidates)

    results = search(RandomSearch(smooth(), Random(0)), noting, trials=21, batch=8)
    assert len(results) == 21
    assert sizes == [8, 8, 5]


def test_ends_with_the_space() -> None:
    space = KnobSpace({"a": (1, 2, 3), "b": (1, 2)})
    strategy = RandomSearch(space, Random(0))
    results = search(strategy, lambda batch: [Result(c, (1.0,)) for c in batch], trials=100)
    assert len({result.candidate for result in results}) == len(results) == 6


def test_ends_when_told_to() -> None:
    strategy = RandomSearch(smooth(), Random(0))
    results = search(strategy, measure, 100, batch=10, stop=lambda result: True)
    assert len(results) == 10


def test_tasks_share_the_trials() -> None:
    small = KnobSpace({"a": (1, 2, 3), "b": (1, 2)})
    tasks = [
        (RandomSearch(smooth(), Random(0)), measure),
        (RandomSearch(small, Random(1)), lambda batch: [Result(c, (1.0,)) for c in batch]),
    ]
    scheduler = RoundRobin([Task("large"), Task("small", weight=2.0)])
    large, rest = search_tasks(scheduler, tasks, trials=50, batch=4)
    assert len(rest) == 6  # all there are, then the other task has what is left
    assert len(large) == 44
    assert scheduler.latency == 2.0 + min(result.seconds for result in large)


def test_all_tasks_may_end_before_the_trials_do() -> None:
    space = KnobSpace({"a": (1, 2, 3)})
    strategy = RandomSearch(space, Random(0))
    tasks = [(strategy, lambda batch: [Result(c, (1.0,)) for c in batch])]
    (results,) = search_tasks(GradientScheduler([Task("only")]), tasks, trials=50, batch=3)
    assert len(results) == 3


def test_the_gradient_spends_trials_where_they_count() -> None:
    """One of three equal tasks runs fifty times as often as the others."""
    spent = {}
    for kind in (RoundRobin, GradientScheduler):
        tasks = [(Evolutionary(smooth(), Random(n)), measure) for n in range(3)]
        scheduler = kind([Task("rare"), Task("often", weight=50.0), Task("rare too")])
        results = search_tasks(scheduler, tasks, trials=120, batch=8)
        spent[kind] = (len(results[1]), scheduler.latency)
    assert spent[GradientScheduler][0] > 1.5 * spent[RoundRobin][0]
    assert spent[GradientScheduler][1] < spent[RoundRobin][1]
