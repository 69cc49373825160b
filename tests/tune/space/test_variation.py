from __future__ import annotations

from collections import Counter
from random import Random

from tests.tune.spaces import smooth
from tilewright.tune.candidate import Candidate
from tilewright.tune.space.knobs import KnobSpace
from tilewright.tune.space.space import Choose, Site
from tilewright.tune.space.variation import (
    crossover,
    draw,
    enumerate_all,
    mutate,
    neighbours,
    sample,
    sites_of,
)


class Dependent(KnobSpace):
    """`b` may be at most `a`."""

    def build(self, choose: Choose) -> None:
        a = choose(Site("a", (1, 2, 3)))
        choose(Site("b", tuple(range(1, a + 1))))


SPACE = Dependent({"a": (1, 2, 3), "b": (1, 2, 3)})


def _pairs(candidates: list[Candidate | None]) -> list[tuple]:
    return [tuple(v for _, v in c.decisions) for c in candidates if c is not None]


def test_all_in_order() -> None:
    assert _pairs(list(enumerate_all(SPACE))) == [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]


def test_all_of_a_constrained_space() -> None:
    found = list(enumerate_all(smooth()))
    assert len(set(found)) == len(found) == 8**5 - 8**3


def test_weights_are_respected() -> None:
    rng = Random(0)
    counts = Counter(draw(Site("x", ("a", "b"), (3.0, 1.0)), rng) for _ in range(4000))
    assert 2800 < counts["a"] < 3200


def test_samples_are_legal_and_all_of_them_occur() -> None:
    rng = Random(0)
    found = set(_pairs([sample(SPACE, rng) for _ in range(200)]))
    assert found == set(_pairs(list(enumerate_all(SPACE))))


def test_mutation_changes_one_decision_and_what_it_makes_impossible() -> None:
    rng = Random(0)
    start = Candidate((("a", 3), ("b", 3)))
    found = set(_pairs([mutate(SPACE, start, rng) for _ in range(200)]))
    assert found == {(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)}


def test_mutation_of_the_only_candidate() -> None:
    space = KnobSpace({"a": (1,)})
    assert mutate(space, Candidate((("a", 1),)), Random(0)) is None
    assert mutate(KnobSpace({}), Candidate(()), Random(0)) is None


def test_children_take_after_their_parents() -> None:
    rng, space = Random(0), smooth()
    one, two = sample(space, rng), sample(space, rng)
    assert one is not None
    assert two is not None
    for _ in range(50):
        child = crossover(space, one, two, rng)
        assert child is not None
        assert all(d in one.decisions + two.decisions for d in child.decisions)


def test_neighbours() -> None:
    middle = Candidate((("a", 3), ("b", 2)))
    found = _pairs(list(neighbours(SPACE, middle, Random(0))))
    assert found == [(1, 1), (2, 2), (3, 1), (3, 3)]
    assert [site.name for site in sites_of(SPACE, middle)] == ["a", "b"]
