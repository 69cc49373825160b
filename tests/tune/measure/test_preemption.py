from __future__ import annotations

import os
import threading
import time

import pytest

from tilewright.tune.measure.evaluator import Sample
from tilewright.tune.measure.preemption import Counters, corrected, counters

NOTHING = Counters(5.0, 7)


def test_waiting_is_taken_off_one_thread() -> None:
    assert corrected(0.010, NOTHING, Counters(5.0101, 7), threads=1) == Sample(0.010)
    left = corrected(0.030, NOTHING, Counters(5.010, 9), threads=1)
    assert left.seconds == pytest.approx(0.010)
    assert not left.disturbed  # filling the caches twice is nothing beside ten milliseconds
    assert corrected(0.005, NOTHING, Counters(5.001, 8), threads=1).disturbed


def test_several_threads_are_spoilt_or_not() -> None:
    assert corrected(0.010, NOTHING, Counters(5.005, 7), threads=2) == Sample(0.010)
    assert corrected(0.010, NOTHING, Counters(5.005, 8), threads=2) == Sample(0.010, True)


def test_counters_of_this_thread_only() -> None:
    other = threading.Thread(target=lambda: sum(range(3_000_000)))
    before, start = counters(), time.perf_counter()
    other.start()
    other.join()
    after, wall = counters(), time.perf_counter() - start
    assert after.seconds - before.seconds < wall
    assert after.switches >= before.switches


@pytest.mark.slow  # needs a core of its own
def test_a_competitor_is_taken_off() -> None:
    """Two threads that never wait, on one core: what one of them has used is not both's time."""
    stop = False

    def spin() -> None:
        os.sched_setaffinity(0, {core})
        while not stop:
            os.sched_getaffinity(0)  # lets go of the interpreter now and then

    cores = os.sched_getaffinity(0)
    core = min(cores)
    rival = threading.Thread(target=spin)
    os.sched_setaffinity(0, {core})
    try:
        rival.start()
        before, start = counters(), time.perf_counter()
        sum(range(6_000_000))
        seconds, after = time.perf_counter() - start, counters()
    finally:
        stop = True
        os.sched_setaffinity(0, cores)
        rival.join()
    alone = corrected(seconds, before, after, threads=1).seconds
    assert alone < 0.9 * seconds
