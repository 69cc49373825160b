from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tilewright.tune.candidate import Candidate
from tilewright.tune.space.tabular import TabularSpace
from tilewright.tune.space.variation import enumerate_all, mutate, sample

SPACE = TabularSpace(
    "toy",
    {"a": (1, 2), "one": (7,), "b": (1, 2, 4)},
    {(1, 7, 1): 3.0, (1, 7, 2): 2.0, (1, 7, 4): 2.05},
    {(2, 7, 4): "runtime"},
)


def test_only_what_was_measured_exists_and_constant_knobs_are_left_out() -> None:
    assert [str(c) for c in enumerate_all(SPACE)] == [
        "a=1, b=1",
        "a=1, b=2",
        "a=1, b=4",
        "a=2, b=4",
    ]
    assert len(SPACE) == 4


def test_samples_are_uniform() -> None:
    rng = Random(0)
    counts = Counter(str(sample(SPACE, rng)) for _ in range(4000))
    assert len(counts) == 4
    assert all(850 < count < 1150 for count in counts.values())


def test_results() -> None:
    fine, failed = SPACE.measure([Candidate((("a", 1), ("b", 2))), Candidate((("a", 2), ("b", 4)))])
    assert fine.seconds == SPACE.optimum == 2.0
    assert failed.failure == "runtime"
    assert SPACE.share_within(0.05) == 0.5


def test_moves_stay_inside() -> None:
    rng = Random(0)
    one = sample(SPACE, rng)
    for _ in range(50):
        assert one is not None
        one = mutate(SPACE, one, rng)
        assert one in set(enumerate_all(SPACE))


def test_rows_give_everything_back() -> None:
    assert dict(SPACE.rows()) == {(1, 1): 3.0, (1, 2): 2.0, (1, 4): 2.05, (2, 4): "runtime"}


def test_candidates_from_elsewhere_are_not_guessed() -> None:
    with pytest.raises(KeyError):
        SPACE.measure([Candidate((("a", 2), ("b", 1)))])
