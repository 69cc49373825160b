from __future__ import annotations

from random import Random

import numpy as np

from tests.models import mlp
from tilewright.driver.tuning.extract_tasks import extract_tasks
from tilewright.driver.tuning.unchecked_space import UncheckedSpace
from tilewright.target.host import host
from tilewright.tune.space.constructed import ConstructedSpace
from tilewright.tune.space.variation import sample


def test_everything_but_the_check_is_the_spaces() -> None:
    scheduled = extract_tasks(mlp(4), host()).tasks[0].scheduled
    space = ConstructedSpace(scheduled.func, scheduled.constants, host())
    asked: list[object] = []
    space.check = asked.append  # type: ignore[method-assign]
    deferred = UncheckedSpace(space)
    one = sample(deferred, Random(3))
    assert one is not None
    assert one == sample(space, Random(3))
    np.testing.assert_array_equal(deferred.features([one]), space.features([one]))
    assert deferred.legal(one)
    assert not asked
    assert deferred.name == space.name
