from __future__ import annotations

import numpy as np
import pytest

from tests.models import mlp, random_inputs
from tests.runtime.cuda.fake_driver import FakeDriver
from tests.runtime.cuda.test_executable import _open
from tilewright.runtime.cuda.rotated_runs import MAX_COPIES


class Clock:
    """Times of a driver with no GPU behind it: so many milliseconds for each kernel."""

    def __init__(self, driver: FakeDriver, per_kernel: float) -> None:
        self.driver = driver
        self.per_kernel = per_kernel
        self.noted: list[int] = []

    def record(self, event: int, stream: int) -> None:
        self.noted.append(len(self.driver.launched))

    def elapsed(self, start: int, end: int) -> float:
        before, after = self.noted[-2:]
        return (after - before) * self.per_kernel


def _inputs() -> list[np.ndarray]:
    return list(random_inputs(mlp(3)).values())


def test_runs_are_one_graph_in_order() -> None:
    compiled, driver = _open(mlp(3))
    with compiled:
        with compiled.rotated(*_inputs(), caches=0) as runs:
            driver.launched.clear()
            runs.milliseconds(3)
            # the fake driver takes any order that a graph allows
            each = len(driver.launched) // 3
            runs_of = [driver.launched[n * each : (n + 1) * each] for n in range(3)]
            assert len({tuple(sorted(one)) for one in runs_of}) == 1
            assert len(set(runs_of[0])) == each
            graphs = len([g for g in driver.graphs if g])
            runs.milliseconds(3)
            assert len([g for g in driver.graphs if g]) == graphs  # the same again
    assert {k: v for k, v in driver.live.items() if v} == {}


def test_copies_hold_the_same_inputs_and_take_turns() -> None:
    compiled, driver = _open(mlp(3))
    with compiled:
        runs = compiled.rotated(*_inputs(), caches=10)
        copies = runs._copies
        assert 2 < len(copies) <= MAX_COPIES + 1
        sizes = runs._context.bytes
        count = len(compiled.inputs)
        for places in copies:
            for n, array in enumerate(_inputs()):
                memory = next(m for start, m in driver.live.items() if start == places[n])
                skip = places[n] - memory.__array_interface__["data"][0]
                assert memory[skip : skip + sizes[n]].tobytes() == array.tobytes()
        runs.milliseconds(len(copies))
        results = []
        for places in copies:
            memory = driver.live[places[count]] if places[count] in driver.live else None
            if memory is not None:
                skip = places[count] - memory.__array_interface__["data"][0]
                results.append(memory[skip : skip + sizes[count]].tobytes())
        assert len(results) >= len(copies) - 1
        assert len(set(results)) == 1
        runs.close()


def test_a_flush_comes_before_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, driver = _open(mlp(3))
    filled: list[int] = []
    monkeypatch.setattr(driver, "fill", lambda to, byte, size, stream: filled.append(size))
    with compiled, compiled.rotated(*_inputs(), caches=8, flush=True) as runs:
        runs.milliseconds(1)
        runs.milliseconds(1)
    assert filled == [4096, 4096]
