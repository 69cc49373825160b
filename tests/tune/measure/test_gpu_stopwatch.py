from __future__ import annotations

import numpy as np
import pytest

from tests.models import mlp, random_inputs
from tests.runtime.cuda.test_executable import _open
from tests.runtime.cuda.test_rotated_runs import Clock
from tilewright.tune.measure.gpu_stopwatch import GpuStopwatch


def test_a_time_is_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    model = mlp(3)
    compiled, driver = _open(model)
    clock = Clock(driver, per_kernel=0.1)
    monkeypatch.setattr(driver, "elapsed", clock.elapsed)
    monkeypatch.setattr(driver, "record", clock.record)
    with compiled:
        watch = GpuStopwatch(compiled, [np.asarray(x) for x in random_inputs(model).values()])
        launched = len(set(driver.launched))
        assert watch.least == pytest.approx(1e-4 * launched)
        assert watch.runs == max(1, int(np.ceil(5 / launched)))
        watch.warm()
        sample = watch.sample()
        assert sample.seconds == pytest.approx(1e-4 * launched)
        assert not sample.disturbed
        watch.close()


def test_cold_runs_are_timed_alone() -> None:
    model = mlp(3)
    compiled, _ = _open(model)
    with compiled:
        watch = GpuStopwatch(compiled, list(random_inputs(model).values()), cold=True)
        assert watch.runs == 1
        watch.close()
