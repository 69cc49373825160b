from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

from tests.driver.tuning.test_apply_records import _written, verdicts_of
from tests.models import mlp, transformer
from tilewright.driver.tuning.end_to_end import TuningModel, WholeModel
from tilewright.driver.tuning.extract_tasks import extract_tasks
from tilewright.driver.tuning.session import BUILD_WORKER
from tilewright.target.host import host
from tilewright.tune.measure.measurer import Measurer, MeasureSettings
from tilewright.tune.tuned_schedules import FASTER, NO_DIFFERENCE, SLOWER


@pytest.mark.parametrize("batch", [16, "N"])
def test_both_models_run_in_turn(tmp_path: Path, batch: int | str) -> None:
    records = _written(tmp_path / "r.db", verdicts_of(mlp(batch)))
    model = TuningModel(mlp(batch), host(), {}, "f32", {"N": 3}, 1)
    with Measurer(BUILD_WORKER, MeasureSettings(rounds=(10, 10), model_seconds=0.5)) as measurer:
        latency = WholeModel(model, tmp_path).compare(records, measurer)
    assert latency.result in (FASTER, NO_DIFFERENCE, SLOWER)
    assert 0 < latency.before < 1
    assert 0 < latency.after < 1


def test_every_kernel_of_a_run_is_timed(tmp_path: Path) -> None:
    model = TuningModel(transformer(1, 6), host(), {}, "f32", {}, 1)
    times = WholeModel(model, tmp_path).kernel_times()
    tasks = extract_tasks(model.source, host()).tasks
    assert times.keys() == {name for task in tasks for name in task.kernels}
    assert all(0 <= row.least < 1e9 for row in times.values())
    assert any(row.bound is not None and row.bound.seconds > 0 for row in times.values())


FOURS = """
<ir_version: 10, opset_import: ["" : 17]>
fours (float[N] x) => (float[M, 4] y) <int64[2] shape = {-1, 4}> {
    rows = Reshape (x, shape)
    y = Relu (rows)
}
"""


def test_a_model_that_does_not_run_on_random_inputs_is_told(tmp_path: Path) -> None:
    model = TuningModel(onnx.parser.parse_model(FOURS), host(), {}, "f32", {"N": 3}, 1)
    whole = WholeModel(model, tmp_path)
    assert whole.kernel_times() == {}
    with Measurer(BUILD_WORKER) as measurer:
        assert whole.compare(tmp_path / "no.db", measurer).result
    fitting = TuningModel(model.source, host(), {}, "f32", {"N": 8}, 1)
    assert len(WholeModel(fitting, tmp_path).kernel_times()) == 1
