from __future__ import annotations

import math

from tilewright.tune.candidate import Candidate, Result


def test_candidates_are_their_decisions() -> None:
    one = Candidate((("tile", (None, 8)), ("unroll", 4)))
    assert one == Candidate((("tile", (None, 8)), ("unroll", 4)))
    assert len({one, Candidate((("tile", (None, 4)), ("unroll", 4)))}) == 2
    assert str(one) == "tile=(None, 8), unroll=4"


def test_the_time_is_the_median_and_endless_for_a_failure() -> None:
    one = Candidate(())
    assert Result(one, (3.0, 1.0, 2.0)).seconds == 2.0
    assert Result(one, (1.0,), failure="wrong result").seconds == math.inf
    assert Result(one).seconds == math.inf
