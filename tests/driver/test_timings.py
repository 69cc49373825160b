from __future__ import annotations

import pytest

from tests.models import mlp
from tilewright.core.config import override
from tilewright.core.errors import UnsupportedError
from tilewright.driver.compile_graph import lower, optimized_graph
from tilewright.driver.options import make_options
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


def test_no_stage_begins_when_the_time_is_over() -> None:
    timings = Timings()
    with override(compile_limit_s=0), pytest.raises(UnsupportedError) as caught:
        with timings.measure("lower"):
            pytest.fail("it has begun")
    assert caught.value.code == "compile.time-limit"
    assert not timings.stages
    with override(compile_limit_s=1000), timings.measure("lower"):
        pass


def test_passes_and_kernels_of_a_model_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each looks at the clock: however long a model is, compiling it ends soon after the limit."""
    looks = []
    monkeypatch.setattr(Timings, "check_limit", lambda self: looks.append(self))
    optimized_graph(mlp(2), make_options())
    of_graph = len(looks)
    build = lower(mlp(2), make_options())
    assert of_graph > 20
    assert len(looks) - 2 * of_graph >= 4 * len(build.distinct_kernels)
