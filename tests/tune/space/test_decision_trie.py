from __future__ import annotations

from random import Random

import pytest

from tilewright.tune.candidate import Candidate
from tilewright.tune.space import decision_trie as module
from tilewright.tune.space.decision_trie import DecisionTrie
from tilewright.tune.space.knobs import KnobSpace
from tilewright.tune.space.space import Choose, Illegal, Site, Space
from tilewright.tune.space.variation import enumerate_all, mutate, sample


class Triangle(KnobSpace):
    """What comes second depends on the first, some of it is nothing; counts how often it is run."""

    def __init__(self) -> None:
        super().__init__({})
        self.runs = 0

    def build(self, choose: Choose) -> None:
        self.runs += 1
        first = choose(Site("first", (1, 2, 3, 4)))
        if first == 3:
            raise Illegal("three")
        if first != 4:
            choose(Site("second", tuple(range(first))))


class Asking(Space):
    """The same through what is remembered of it."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.trie = DecisionTrie(space.build)

    def build(self, choose: Choose) -> None:
        self.trie.ask(choose)

    def features(self, candidates):  # type: ignore[no-untyped-def]
        return self.space.features(candidates)


def _walk(space: Space) -> list[Candidate | None]:
    rng = Random(1)
    drawn = [sample(space, rng) for _ in range(20)]
    return drawn + [mutate(space, one, rng) for one in drawn if one is not None]


def test_the_same_candidates_come_of_the_same_answers() -> None:
    assert [*enumerate_all(Asking(Triangle()))] == [*enumerate_all(Triangle())]
    assert _walk(Asking(Triangle())) == _walk(Triangle())


def test_nothing_is_run_twice_not_even_what_is_illegal() -> None:
    inner = Triangle()
    space = Asking(inner)
    first = [*enumerate_all(space)]
    assert inner.runs == len(first) + 1  # and the one that is none
    assert [*enumerate_all(space)] == first
    assert inner.runs == len(first) + 1


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT", 2)
    inner = Triangle()
    space = Asking(inner)
    assert [*enumerate_all(space)] == [*enumerate_all(Triangle())]
    assert _walk(space) == _walk(Triangle())
    assert inner.runs > 6
