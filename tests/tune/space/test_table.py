from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.for_each import for_each
from tests.schedule.programs import matmul
from tilewright.core.errors import ConfigError
from tilewright.target.host import host
from tilewright.tune.benchmark.recompute_features import refreshed
from tilewright.tune.features.program import feature_names
from tilewright.tune.space.table import (
    DATA,
    SCHEDULE_SPACES,
    SPACES,
    program_spaces,
    tabular_space,
)
from tilewright.tune.space.tabular_files import read_origin

# Figures of the data as it was published.
PUBLISHED = {
    "convolution-a100": (4362, 0.5536e-3, 1 / 4362),
    "dedispersion-a4000": (11130, 147.70e-3, 1451 / 11130),
}


OURS = [name for name in SPACES if name not in PUBLISHED]
# Bound by memory: many schedules do equally well, and of one there are few.
EASY = ("linear_1x4096x4096", "rowsum_4096x4096")


@for_each("name", PUBLISHED)
def test_published_spaces(name: str) -> None:
    space = tabular_space(name)
    count, optimum, share = PUBLISHED[name]
    assert len(space) == count
    assert space.optimum == pytest.approx(optimum, rel=1e-4)
    assert space.share_within(0.05) == pytest.approx(share, rel=1e-6)


# Features that have changed are other ones in all of them.
@pytest.mark.parametrize(
    "name", [OURS[0], *(pytest.param(n, marks=pytest.mark.slow) for n in OURS[1:])]
)
def test_spaces_of_programs_have_this_versions_features(name: str) -> None:
    """If not: `tilewright lab refresh tilewright/tune/space/data/*.gz`."""
    space = tabular_space(name)
    assert space.about.columns == feature_names()
    again, _ = refreshed(space).measured()
    np.testing.assert_allclose(space.measured()[0], again, rtol=1e-4, atol=1e-6)
    if name not in EASY:
        assert len(space) >= 240
        assert space.share_within(0.05) < 0.1
    assert name in program_spaces()


def test_data_is_small_and_says_where_it_comes_from() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 600_000
    assert ".json.gz" in (DATA / "LICENCE.txt").read_text()
    for name in OURS:
        assert all(read_origin(DATA / f"{name}.json.gz"))
    for name in PUBLISHED:
        data = json.loads((DATA / f"{name}.json").read_text())
        assert data["source"]
        assert data["licence"].startswith("MIT")
        assert f"{name}.json" in (DATA / "LICENCE.txt").read_text()


def test_a_path_names_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_bytes((DATA / "convolution-a100.json").read_bytes())
    assert len(tabular_space(str(path))) == 4362
    with pytest.raises(ConfigError) as caught:
        tabular_space("convolution")
    assert caught.value.code == "space.unknown"
    assert "convolution-a100" in caught.value.help


@for_each("name", SCHEDULE_SPACES.names())
def test_spaces_of_schedules_have_names(name: str) -> None:
    space = SCHEDULE_SPACES.get(name)(matmul(16, 16, 16), frozenset("w"), host())
    assert space.default().decisions
    assert dict(SCHEDULE_SPACES.describe())[name]
