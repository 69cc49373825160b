from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.core.errors import ConfigError
from tilewright.tune.cost.cost_model import CostModel, throughputs
from tilewright.tune.cost.pretrained import (
    Measured,
    PretrainedCost,
    pretrain,
    read_model,
    write_model,
)
from tilewright.tune.cost.table import make_cost_model
from tilewright.tune.features.program import feature_names

WIDTH = len(feature_names())


def _task(seed: int, count: int = 80, shift: float = 0.0) -> Measured:
    """A task of a family: its best lies at 3 and `shift`, and it has its own unit of time."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, WIDTH))
    some = rows[:, 10:14] = rng.integers(0, 8, (count, 4))
    seconds = 1 + (some[:, 0] - 3) ** 2 + (some[:, 1] - 3 - shift) ** 2 + some[:, 2]
    return rows, seconds * 10.0 ** rng.integers(-3, 3)


def _tau(model: CostModel, task: Measured) -> float:
    rows, seconds = task
    one, two = model.predict(rows), -seconds
    signs = np.sign(one[:, None] - one) * np.sign(two[:, None] - two)
    return float(signs.sum() / np.count_nonzero(two[:, None] - two))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "family.txt"
    write_model(path, pretrain([_task(seed) for seed in range(4)]))
    return path


def test_a_file_gives_the_same_model(file: Path) -> None:
    rows, _ = _task(9)
    trained = pretrain([_task(seed) for seed in range(4)])
    np.testing.assert_allclose(read_model(file).predict(rows), trained.predict(rows))


def test_a_task_never_seen_is_ranked_before_anything_is_measured(file: Path) -> None:
    model = make_cost_model(f"pretrained:{file}")
    assert model.ready
    assert _tau(model, _task(20)) > 0.7


def test_the_local_part_learns_what_is_different(file: Path) -> None:
    other = _task(21, count=200, shift=2.0)
    model = PretrainedCost(0, str(file))
    before = _tau(model, other)
    known = (other[0][:64], other[1][:64])
    model.fit(known[0], throughputs(known[1]))
    assert _tau(model, other) > before + 0.05


def test_columns_that_a_space_appends_are_for_the_local_part(file: Path) -> None:
    rows, seconds = _task(22)
    wide = np.hstack([rows, seconds[:, None]])
    model = PretrainedCost(0, str(file))
    np.testing.assert_array_equal(model.predict(wide), model.predict(rows))
    model.fit(wide, throughputs(seconds))
    assert _tau(model, (wide, seconds)) > 0.9


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]\n", '{"cost model": 1, "columns": "other"}\ntree', "GARBAGE"],
)
def test_other_files_are_refused(tmp_path: Path, text: str, file: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_model(path)
    assert caught.value.code == "cost.file"
    path.write_text(file.read_text().partition("\n")[0] + "\nno model")
    with pytest.raises(ConfigError):
        read_model(path)
