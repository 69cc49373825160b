from __future__ import annotations

import numpy as np

from tests.models import mlp
from tests.runtime.cuda.test_executable import _open
from tilewright.runtime.cuda.event_times import MAX_AHEAD, graph_time, launches_ahead, step_times


def test_events_stand_between_steps_and_are_given_back() -> None:
    compiled, driver = _open(mlp(3), interpret=False)
    compiled(np.zeros((3, 16), np.float32))
    (context,) = compiled._program.contexts.values()
    steps, before = len(compiled.manifest["kernels"]), driver.live[-1]
    assert step_times(context, steps, ahead=2) == [1000] * steps
    assert graph_time(context) == 0.001
    assert 1 <= launches_ahead(context, steps) <= MAX_AHEAD
    assert driver.live[-1] == before
