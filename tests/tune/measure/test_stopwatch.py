from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from tests.runtime.fake_model import arguments, container
from tilewright.core.host.cache_sizes import cache_sizes
from tilewright.runtime.cpu.executable import Executable
from tilewright.tune.measure import stopwatch
from tilewright.tune.measure.stopwatch import CacheFlush, Stopwatch


@pytest.fixture
def model() -> Iterator[Executable]:
    with Executable(container()) as made:
        yield made


def test_short_runs_are_timed_together(model: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def times(*inputs: np.ndarray, runs: int) -> np.ndarray:
        asked.append(runs)
        return np.full((runs, 2), 2000)

    monkeypatch.setattr(model, "kernel_times", times)
    watch = Stopwatch(model, arguments(4))
    assert watch.sample().seconds <= 4e-6 * (1 + 1e-9)
    assert asked == [1, 1, 1, 25]
    watch.warm()
    assert asked[4:] == [1]
    monkeypatch.setattr(stopwatch, "MIN_TIMED_SECONDS", 1.0)
    Stopwatch(model, arguments(4)).sample()
    assert asked[5:] == [1, 1, 1, stopwatch.MAX_RUNS]


def test_the_caches_are_emptied_before_every_cold_run(
    model: Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Stopwatch(model, arguments(4), cold=True)
    flushed: list[int] = []
    monkeypatch.setattr(watch, "flush", lambda: flushed.append(1))
    assert watch.sample().seconds <= 4e-6 * (1 + 1e-9)
    assert len(flushed) == 1
    watch.warm()
    assert watch.runs == len(flushed) == 1


def test_a_flush_goes_over_more_than_the_caches_hold() -> None:
    flush = CacheFlush()
    cores = os.sched_getaffinity(0)
    flush()
    assert os.sched_getaffinity(0) == cores
    assert flush._shared.nbytes > max(cache_sizes().values(), default=0)
    assert (flush._shared == 1).all()
    assert (flush._own == len(cores)).all()


def test_a_model_without_kernels(model: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "kernel_times", lambda *inputs, runs: np.zeros((runs, 0), np.int64))
    assert Stopwatch(model, arguments(4)).sample().seconds == 0.0
