from __future__ import annotations

import numpy as np
import pytest

from tests.tune.benchmark.programs import ProductSpace, recorded
from tests.tune.spaces import measure, smooth
from tilewright.core.errors import TuneError
from tilewright.tune.benchmark.record_space import record
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.space.subspace import largest_subspace
from tilewright.tune.space.tabular import About
from tilewright.tune.space.variation import enumerate_all


def test_what_was_recorded_is_what_was_measured() -> None:
    live, space = ProductSpace(24), recorded(24)
    candidates = list(enumerate_all(live))
    assert set(enumerate_all(space)) == set(candidates)
    assert len(space) == len(candidates) == 52
    assert space.measure(candidates) == live.measure(candidates)
    np.testing.assert_array_equal(space.features(candidates), live.features(candidates))
    assert {one.trace for one in space.programs.values()} == {*map(live.trace, candidates)}


def test_part_of_a_large_space() -> None:
    shown: list[str] = []
    part = largest_subspace(smooth(), 40)
    space = record("smooth", part, measure, str, About(), shown.append)
    assert 20 < len(space) <= 40
    assert space.optimum == min(result.seconds for result in measure(list(enumerate_all(part))))
    assert "programs" in shown[-1]


def test_equal_programs_are_measured_once() -> None:
    asked: list[Candidate] = []

    def counting(candidates: list[Candidate]) -> list[Result]:
        asked.extend(candidates)
        return measure(candidates)

    part = largest_subspace(smooth(), 40)
    space = record(
        "smooth",
        part,
        counting,  # type: ignore[arg-type]
        lambda candidate: str(candidate.decisions[0]),
        About(),
    )
    assert len(asked) < len(space)
    assert len(asked) == len({candidate.decisions[0] for candidate in enumerate_all(space)})


def test_a_space_in_which_nothing_runs_is_an_error() -> None:
    def failing(candidates: list[Candidate]) -> list[Result]:
        return [Result(candidate, failure="crashed") for candidate in candidates]

    with pytest.raises(TuneError) as caught:
        record("smooth", largest_subspace(smooth(), 4), failing, str, About())  # type: ignore[arg-type]
    assert caught.value.code == "lab.record"
    assert "crashed" in caught.value.message
