from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.schedule.programs import matmul
from tilewright.core.errors import ConfigError
from tilewright.target.host import host
from tilewright.tune.cost.pretrained import pretrain
from tilewright.tune.cost.training_data import (
    MAX_PROGRAMS_PER_TASK,
    MIN_PROGRAMS,
    read_training_data,
    recorded_tasks,
)
from tilewright.tune.features.program import program_features
from tilewright.tune.records import Record, Records
from tilewright.tune.space.constructed import ConstructedSpace
from tilewright.tune.space.variation import sample
from tilewright.tune.target_key import target_text
from tilewright.tune.workload import workload_hash, workload_text

TEXT = workload_text(matmul(), frozenset())
HASH = workload_hash(TEXT)


def _records(count: int) -> list[Record]:
    space, rng = ConstructedSpace(matmul(), frozenset(), host()), Random(0)
    texts: dict[str, None] = {}
    while len(texts) < count:
        candidate = sample(space, rng)
        assert candidate is not None
        texts[space.text(candidate)] = None
    where = target_text(host())
    return [
        Record(HASH, where, text, (1.0 + number, 2.0 + number, 90.0), "", number, ())
        for number, text in enumerate(texts)
    ]


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "records.db")


def test_programs_are_made_again_and_have_their_median_time(records: Records) -> None:
    measured = _records(MIN_PROGRAMS + 1)
    measured[1] = replace(measured[1], times=(), failure="crashed")
    records.add(measured, {HASH: TEXT})
    ((rows, seconds),) = recorded_tasks(records, host())
    assert seconds.tolist() == [2.0, math.inf, *(2.0 + n for n in range(2, MIN_PROGRAMS + 1))]
    space = ConstructedSpace(matmul(), frozenset(), host())
    first = space.parse(measured[0].trace)
    assert first is not None
    np.testing.assert_array_equal(rows[0], program_features(space.func(first), host()))
    assert np.isfinite(pretrain([(rows, seconds)]).predict(rows)).all()


def test_conditions_and_machines_are_kept_apart(records: Records) -> None:
    measured = _records(MIN_PROGRAMS)
    cold = [replace(r, conditions=(("cold", "True"),)) for r in measured]
    other = target_text(replace(host(), vector_bits=host().vector_bits * 8))
    elsewhere = [replace(r, target=other) for r in measured]
    records.add([*measured, *cold, *elsewhere], {HASH: TEXT})
    assert [len(seconds) for _, seconds in recorded_tasks(records, host())] == [
        MIN_PROGRAMS,
        MIN_PROGRAMS,
    ]


def test_what_teaches_nothing_is_left_out(records: Records) -> None:
    measured = _records(MIN_PROGRAMS)
    stale = replace(measured[0], trace='split("none", [?, 4])', measured_at=99.0)
    comparison = replace(measured[1], baseline="x", baseline_times=(1.0,))
    odd = replace(measured[2], workload="odd")
    records.add([*measured[:-1], stale, comparison, odd], {HASH: TEXT, "odd": "nothing"})
    assert recorded_tasks(records, host()) == []
    with pytest.raises(ConfigError) as caught:
        read_training_data(records.path, host())
    assert caught.value.code == "cost.too-few-records"


def test_the_newest_count(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.tune.cost.training_data.MAX_PROGRAMS_PER_TASK", MIN_PROGRAMS)
    records.add(_records(MIN_PROGRAMS + 2), {HASH: TEXT})
    ((_, seconds),) = recorded_tasks(records, host())
    assert seconds.tolist() == [2.0 + n for n in range(2, MIN_PROGRAMS + 2)]
    assert MAX_PROGRAMS_PER_TASK > MIN_PROGRAMS
