from __future__ import annotations

from random import Random

from tests.tune.spaces import measure, smooth
from tilewright.tune.candidate import Result
from tilewright.tune.search import search
from tilewright.tune.space.knobs import KnobSpace
from tilewright.tune.strategy.random import RandomSearch


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
