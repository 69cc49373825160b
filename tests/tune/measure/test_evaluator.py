from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from statistics import median

import numpy as np
import pytest

from tilewright.tune.measure.evaluator import (
    Effort,
    Evaluation,
    Sample,
    counted,
    enough,
    estimate,
    evaluate,
)
from tilewright.tune.space.table import tabular_space

EFFORT = Effort(least=4, most=20, seconds=1.0, epsilon=0.01, margin=0.05, hopeless=3.0)
FIXED = 10  # repeats that the adaptive ones are compared with


def run(times: list[float], incumbent: float = math.inf, effort: Effort = EFFORT) -> str:
    samples, clock = itertools.cycle(times), itertools.count(0, 1e-6)
    return evaluate(lambda: Sample(next(samples)), lambda: next(clock), effort, incumbent).reason


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
    # one accident
    assert enough([Sample(9.0)], 0.1, EFFORT, 1.0) == ""


def test_disturbed_times_say_nothing() -> None:
    spoilt = [Sample(9.0, True)] * 5
    assert enough(spoilt, 0.1, EFFORT, 1.0) == ""
    assert enough([*spoilt, *[Sample(1.0)] * 4], 0.1, EFFORT, 1.0) == "stable"
    assert enough(spoilt * 4, 0.1, EFFORT, 1.0) == "repeats"
    times = iter([*spoilt, *[Sample(1.0)] * 9])
    clock = itertools.count()
    found = evaluate(lambda: next(times), lambda: next(clock) * 1e-6, EFFORT)
    assert found == Evaluation([1.0] * 4, "stable", 9, 5)


def test_the_ends() -> None:
    assert run([1.0, 3.0]) == "repeats"
    two = [Sample(1.0), Sample(3.0)]
    assert enough(two, 2.0, EFFORT, math.inf) == "seconds"
    assert enough(two, 0.5, EFFORT, math.inf) == ""
    assert enough(two[:1], 2.0, EFFORT, math.inf) == "seconds"


def test_which_times_count() -> None:
    mixed = [Sample(3.0), Sample(2.0), Sample(1.0, True)]
    assert counted(mixed, "stable") == [3.0, 2.0]
    assert counted(mixed, "seconds") == [2.0]
    spoilt = [Sample(5.0, True), Sample(4.0, True), Sample(6.0, True)]
    assert counted(spoilt, "repeats") == [4.0, 5.0]


def test_the_slowest_times_do_not_count() -> None:
    assert estimate([1.0, 1.0, 1.0, 100.0]) == (1.0, 0.0)
    mean, error = estimate([1.0, 2.0])
    assert (mean, error) == (1.5, pytest.approx(0.5))
    assert estimate([7.0]) == (7.0, math.inf)


def noise(rng: np.random.Generator, preempted: float) -> Iterator[tuple[float, Sample]]:
    """Factors on a time: of the clock on the wall, and of the sample that is made of it.

    The shares and sizes are about those of a kernel timed for minutes on two busy cores: jitter and
    slow drift, what interrupts and other users of the caches add, another process on the core, and,
    seldom, a stop of the whole machine which nobody notices.
    """
    drift = rng.normal(0, 0.01)
    while True:
        drift = 0.99 * drift + rng.normal(0, 0.0014)
        factor = math.exp(drift + rng.normal(0, 0.006))
        if rng.random() < 0.1:
            factor *= rng.uniform(1.02, 1.2)
        if rng.random() < 0.003:
            factor *= rng.uniform(2, 20)
        if rng.random() < preempted:
            polluted = factor * rng.uniform(1.0, 1.15)
            yield polluted * rng.uniform(2, 8), Sample(polluted, True)
        else:
            yield factor, Sample(factor)


@pytest.mark.parametrize("preempted", [0.0, 0.03, 0.4])
def test_less_time_than_fixed_repeats_and_the_best_is_not_lost(preempted: float) -> None:
    """AdaTune's claim, on times of a measured space with noise on top."""
    space = tabular_space("convolution-a100")
    known = np.array([time for _, time in space.rows() if isinstance(time, float)])
    rng = np.random.default_rng(7)
    spent = fixed = 0.0
    sessions, rejected, off = 120, 0, 0
    for _ in range(sessions):
        true = rng.choice(known, 48, replace=False)
        found, incumbent = [], math.inf
        for time in true:
            source = noise(rng, preempted)
            walls: list[float] = []

            def sample() -> Sample:
                wall, one = next(source)  # noqa: B023
                walls.append(wall * time)  # noqa: B023
                return Sample(one.seconds * time, one.disturbed)  # noqa: B023

            got = evaluate(sample, lambda: sum(walls), Effort(), incumbent)  # noqa: B023
            rejected += time == true.min() and got.reason in ("worse", "hopeless")
            found.append(median(got.times))
            incumbent = min(incumbent, found[-1])
            spent += sum(walls)
            rest = [next(source)[0] * time for _ in range(max(0, FIXED - len(walls)))]
            fixed += sum(walls[:FIXED]) + sum(rest)
        off += true[int(np.argmin(found))] > 1.03 * true.min()
    assert spent <= 0.6 * fixed
    assert rejected < 0.02 * sessions
    assert off < 0.02 * sessions
