from __future__ import annotations

import pytest

from tilewright.driver.timings import Timings


def test_time_adds_up_by_stage() -> None:
    timings = Timings()
    for _ in range(2):
        with timings.measure("lower"):
            pass
    first = timings.stages["lower"]
    with pytest.raises(ZeroDivisionError), timings.measure("lower"):
        _ = 1 // 0
    assert timings.stages.keys() == {"lower"}
    assert timings.stages["lower"] > first > 0
    assert "lower" in timings.table()
    assert timings.passes is timings.passes
