from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models import mlp, save
from tilewright.driver.tuning.extract_tasks import extract_tasks
from tilewright.driver.tuning.record_space import record_task
from tilewright.driver.tuning.session import BUILD_WORKER
from tilewright.target.host import host
from tilewright.tune.benchmark.recompute_features import refreshed
from tilewright.tune.measure.measurer import Measurer
from tilewright.tune.space.tabular_files import read_space, write_space


@pytest.mark.slow
def test_a_kernel_is_recorded_and_replayed(tmp_path: Path) -> None:
    task = extract_tasks(save(mlp(), tmp_path / "mlp.onnx"), host()).tasks[0]
    with Measurer(BUILD_WORKER) as measurer:
        space = record_task("mlp", task, host(), measurer, 4)
    assert 2 <= len(space) <= 4
    assert space.optimum > 0
    assert not [why for _, why in space.rows() if isinstance(why, str)]
    write_space(tmp_path / "mlp.json.gz", space, "a test", "none")
    again = read_space(tmp_path / "mlp.json.gz")
    features, _ = again.measured()
    fresh, _ = refreshed(again).measured()
    np.testing.assert_allclose(features, fresh, rtol=1e-4, atol=1e-6)
