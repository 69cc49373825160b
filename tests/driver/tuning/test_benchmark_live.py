from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import mlp, save
from tilewright.driver.tuning.benchmark_live import compete_live
from tilewright.driver.tuning.extract_tasks import extract_tasks
from tilewright.driver.tuning.session import BUILD_WORKER
from tilewright.target.host import host
from tilewright.tune.benchmark.compare_methods import Settings
from tilewright.tune.measure.measurer import Measurer
from tilewright.tune.method import Method


@pytest.mark.slow
def test_methods_on_the_machine(tmp_path: Path) -> None:
    tasks = extract_tasks(save(mlp(), tmp_path / "mlp.onnx"), host()).tasks[:1]
    methods = [Method("random"), Method("annealing", "analytical")]
    with Measurer(BUILD_WORKER) as measurer:
        standings = compete_live(
            tasks, host(), methods, Settings(trials=3, batch=2, seeds=1), measurer
        )
    assert {str(one.method) for one in standings} == {"random", "annealing+analytical"}
    assert min(run.best[-1] for one in standings for run in one.runs) == standings[0].optimum
    assert all(len(run.best) == 3 for one in standings for run in one.runs)
