from __future__ import annotations

from dataclasses import replace

import pytest

from tests.for_each import for_each
from tests.tune.benchmark.programs import recorded
from tilewright.core.errors import TuneError
from tilewright.tune.benchmark.recompute_features import refreshed
from tilewright.tune.space.tabular import About, TabularEntry, TabularSpace


def test_features_come_back_and_times_stay() -> None:
    space = recorded(24)
    old = {key: TabularEntry(one.trace, (1.0,)) for key, one in space.programs.items()}
    times = {key: time for key, time in space.rows() if not isinstance(time, str)}
    failures = {key: why for key, why in space.rows() if isinstance(why, str)}
    about = replace(space.about, columns=("old",))
    again = refreshed(TabularSpace(space.name, space.knobs, times, failures, old, about))
    assert again.about == space.about
    assert again.programs == space.programs
    assert dict(again.rows()) == dict(space.rows())


@for_each("about", [About(), About(workload="constants\nnonsense", target="{}")])
def test_programs_that_cannot_be_made_again(about: About) -> None:
    space = TabularSpace("x", {"a": (1, 2)}, {(1,): 1.0}, {}, {(1,): TabularEntry("", ())}, about)
    with pytest.raises(TuneError) as caught:
        refreshed(space)
    assert caught.value.code == "lab.refresh"
