from __future__ import annotations

from random import Random

from tests.for_each import for_each
from tests.tune.spaces import smooth
from tilewright.tune.space.knobs import KnobSpace
from tilewright.tune.space.space import Choose, Site, contains
from tilewright.tune.space.subspace import Subspace, largest_subspace
from tilewright.tune.space.variation import enumerate_all, neighbours


@for_each("limit", [1, 10, 300])
def test_a_part_is_as_large_as_asked_for(limit: int) -> None:
    whole = smooth()
    part = largest_subspace(whole, limit)
    found = list(enumerate_all(part))
    assert limit / 2 < len(found) <= limit
    assert all(contains(whole, candidate) for candidate in found)
    assert max(part.widths.values(), default=1) - min(part.widths.values(), default=1) <= 1


def test_a_small_space_is_left_whole() -> None:
    whole = KnobSpace({"a": (1, 2, 3), "b": ("x", "y")})
    assert list(enumerate_all(largest_subspace(whole, 100))) == list(enumerate_all(whole))


def test_candidates_of_a_part_have_neighbours_in_it() -> None:
    part = largest_subspace(smooth(), 300)
    first = next(enumerate_all(part))
    assert len(list(neighbours(part, first, Random(0)))) >= 5


def test_the_default_is_kept() -> None:
    class Weighted(KnobSpace):
        def build(self, choose: Choose) -> None:
            choose(Site("a", (1, 2, 3, 4, 5), (1.0, 1.0, 1.0, 4.0, 1.0)))

    space = Weighted({"a": (1, 2, 3, 4, 5)})

    def values(width: int) -> list[object]:
        return [c.decisions[0][1] for c in enumerate_all(Subspace(space, {"a": width}))]

    assert [values(width) for width in (1, 2, 3)] == [[4], [3, 4], [2, 4, 5]]


def test_features_and_texts_are_those_of_the_whole() -> None:
    whole = smooth()
    part = largest_subspace(whole, 10)
    candidates = list(enumerate_all(part))
    assert (part.features(candidates) == whole.features(candidates)).all()
    assert part.text(candidates[0]) == whole.text(candidates[0])
    assert part.legal(candidates[0])
