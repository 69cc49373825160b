from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.schedule.programs import matmul
from tilewright.core.errors import ConfigError
from tilewright.target.cpu import host
from tilewright.tune.space.table import DATA, SCHEDULE_SPACES, SPACES, replay_space

# Figures of the data as it was published.
PUBLISHED = {
    "convolution-a100": (4362, 0.5536e-3, 1 / 4362),
    "dedispersion-a4000": (11130, 147.70e-3, 1451 / 11130),
}


@pytest.mark.parametrize("name", SPACES)
def test_shipped_spaces(name: str) -> None:
    space = replay_space(name)
    count, optimum, share = PUBLISHED[name]
    assert len(space) == count
    assert space.optimum == pytest.approx(optimum, rel=1e-4)
    assert space.share_within(0.05) == pytest.approx(share, rel=1e-6)


def test_data_is_small_and_says_where_it_comes_from() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 300_000
    for name in SPACES:
        data = json.loads((DATA / f"{name}.json").read_text())
        assert data["source"]
        assert data["licence"].startswith("MIT")
        assert f"{name}.json" in (DATA / "LICENCE.txt").read_text()


def test_a_path_names_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_bytes((DATA / "convolution-a100.json").read_bytes())
    assert len(replay_space(str(path))) == 4362
    with pytest.raises(ConfigError) as caught:
        replay_space("convolution")
    assert caught.value.code == "space.unknown"
    assert "convolution-a100" in caught.value.help


@pytest.mark.parametrize("name", SCHEDULE_SPACES.names())
def test_spaces_of_schedules_have_names(name: str) -> None:
    space = SCHEDULE_SPACES.get(name)(matmul(16, 16, 16), frozenset("w"), host())
    assert space.default().decisions
    assert dict(SCHEDULE_SPACES.describe())[name]
