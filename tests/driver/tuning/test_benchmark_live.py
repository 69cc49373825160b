from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import mlp, save
from tilewright.driver.tuning.benchmark_live import compare_methods_live
from tilewright.driver.tuning.extract_tasks import extract_tasks
from tilewright.driver.tuning.session import BUILD_WORKER
from tilewright.target.host import host
from tilewright.tune.benchmark.compare_methods import BenchmarkSettings
from tilewright.tune.measure.measurer import Measurer
from tilewright.tune.method import SearchMethod


@pytest.mark.slow
def test_methods_on_the_machine(tmp_path: Path) -> None:
    tasks = extract_tasks(save(mlp(), tmp_path / "mlp.onnx"), host()).tasks[:1]
    methods = [SearchMethod("random"), SearchMethod("annealing", "analytical")]
    with Measurer(BUILD_WORKER) as measurer:
        leaderboard = compare_methods_live(
            tasks, host(), methods, BenchmarkSettings(trials=3, batch=2, seeds=1), measurer
        )
    assert {str(one.method) for one in leaderboard} == {"random", "annealing+analytical"}
    assert min(run.best[-1] for one in leaderboard for run in one.runs) == leaderboard[0].optimum
    assert all(len(run.best) == 3 for one in leaderboard for run in one.runs)
