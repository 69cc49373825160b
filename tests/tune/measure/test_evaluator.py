from __future__ import annotations

import itertools
import math

import pytest

from tilewright.tune.measure.evaluator import Effort, enough, estimate, evaluate

EFFORT = Effort(least=4, most=20, seconds=1.0, epsilon=0.01, margin=0.05, hopeless=3.0)


def run(times: list[float], incumbent: float = math.inf, effort: Effort = EFFORT) -> str:
    samples, clock = itertools.cycle(times), itertools.count(0, 1e-6)
    return evaluate(lambda: next(samples), lambda: next(clock), effort, incumbent)[1]


def test_steady_times_are_soon_enough() -> None:
    assert run([1.0]) == "stable"
    assert run([1.0, 1.001, 0.999], incumbent=0.99) == "stable"


def test_a_candidate_that_is_worse_is_left() -> None:
    assert run([1.2, 1.3, 1.25], incumbent=1.0) == "worse"
    assert run([4.0], incumbent=1.0) == "hopeless"


def test_not_while_it_might_be_better() -> None:
    # one time as good as the incumbent's: the others may have been disturbed
    assert run([1.3, 1.5, 1.0, 1.4], incumbent=1.0) == "repeats"
    assert run([1.3, 1.5, 1.7, 1.4]) == "repeats"


def test_the_ends() -> None:
    assert run([1.0, 3.0]) == "repeats"
    assert enough([1.0, 3.0], 2.0, EFFORT, math.inf) == "seconds"
    assert enough([1.0, 3.0], 0.5, EFFORT, math.inf) == ""
    assert enough([1.0], 2.0, EFFORT, math.inf) == "seconds"


def test_the_slowest_times_do_not_count() -> None:
    assert estimate([1.0, 1.0, 1.0, 100.0]) == (1.0, 0.0)
    mean, error = estimate([1.0, 2.0])
    assert (mean, error) == (1.5, pytest.approx(0.5))
    assert estimate([7.0]) == (7.0, math.inf)
