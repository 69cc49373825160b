from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.tuning.test_tuned import _written, verdicts_of
from tests.models import mlp
from tilewright.driver.tuning.contest import WON
from tilewright.driver.tuning.session import BUILD_WORKER
from tilewright.driver.tuning.whole_model import Model, compare_models
from tilewright.target.cpu import host
from tilewright.tune.measure.measurer import Measurer, Settings
from tilewright.tune.verdicts import LEVEL, SLOWER


@pytest.mark.parametrize("batch", [16, "N"])
def test_both_models_run_in_turn(tmp_path: Path, batch: int | str) -> None:
    records = _written(tmp_path / "r.db", verdicts_of(mlp(batch)))
    model = Model(mlp(batch), host(), {}, "f32", {"N": 3}, 1)
    with Measurer(BUILD_WORKER, Settings(rounds=10, rounds_seconds=0.5)) as measurer:
        latency = compare_models(model, records, measurer, tmp_path)
    assert latency.result in (WON, LEVEL, SLOWER)
    assert 0 < latency.before < 1
    assert 0 < latency.after < 1
