from __future__ import annotations

from random import Random

from tilewright.tune.candidate import Candidate
from tilewright.tune.strategy.batch_selection import diverse, epsilon_greedy, top


def _candidate(a: int, b: int) -> Candidate:
    return Candidate((("a", a), ("b", b)))


SCORED = [(_candidate(1, 1), 1.0), (_candidate(1, 2), 0.9), (_candidate(2, 2), 0.8)]
RNG = Random(0)


def test_top_takes_the_best() -> None:
    assert top(SCORED, 2, RNG) == [_candidate(1, 1), _candidate(1, 2)]
    assert len(top(SCORED, 9, RNG)) == 3


def test_diversity_has_its_price() -> None:
    assert diverse(0.0)(SCORED, 2, RNG) == top(SCORED, 2, RNG)
    assert diverse(2.0)(SCORED, 2, RNG) == [_candidate(1, 1), _candidate(2, 2)]
    assert set(diverse(2.0)(SCORED, 9, RNG)) == {candidate for candidate, _ in SCORED}
    assert diverse(1.0)([], 2, RNG) == []


def test_equal_scores_are_no_obstacle() -> None:
    level = [(candidate, 0.5) for candidate, _ in SCORED]
    assert len(diverse(0.1)(level, 2, RNG)) == 2


def test_epsilon_leaves_places_to_chance() -> None:
    many = [(_candidate(i, i), -float(i)) for i in range(1000)]
    pick = epsilon_greedy(top, 0.2)
    assert 740 < len(pick(many, 1000, Random(0))) < 860
    assert pick(many, 10, Random(1)) == pick(many, 10, Random(1))
    assert epsilon_greedy(top, 0.0)(many, 5, RNG) == top(many, 5, RNG)
    assert epsilon_greedy(top, 1.0)(many, 5, RNG) == []
