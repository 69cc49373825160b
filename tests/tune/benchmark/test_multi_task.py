from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tilewright.tune.benchmark.compare_methods import BenchmarkSettings
from tilewright.tune.benchmark.multi_task import (
    TabularModel,
    TaskRunSpec,
    compare_task_schedulers,
    run_tasks,
)
from tilewright.tune.method import SearchMethod
from tilewright.tune.space.table import tabular_space

ROUND_ROBIN = SearchMethod("random", task_scheduler="round-robin")
GRADIENT = SearchMethod("random", task_scheduler="gradient")


def _model(products: list[str]) -> TabularModel:
    return TabularModel("products", tuple(zip(products, (1.0, 1.0, 1.0, 8.0), strict=True)))


def test_latency_after_each_trial(products: list[str]) -> None:
    model = _model(products)
    run = run_tasks(TaskRunSpec(model, ROUND_ROBIN, 0, 40, 4))
    assert len(run.best) == 40
    assert run.best[11] == math.inf  # the fourth task has had no batch yet
    assert list(run.best) == sorted(run.best, reverse=True)
    best = [tabular_space(name).optimum for name in products]
    assert model.optimum == pytest.approx(best[0] + best[1] + best[2] + 8 * best[3])
    assert run.best[-1] >= model.optimum


def test_gradient_goes_where_the_time_is(products: list[str]) -> None:
    settings = BenchmarkSettings(trials=96, batch=4, seeds=10)
    leaderboard = compare_task_schedulers(_model(products), [ROUND_ROBIN, GRADIENT], settings)
    by_name = {one.method.task_scheduler: one for one in leaderboard}
    assert by_name["gradient"].mean_t95 < by_name["round-robin"].mean_t95
    assert leaderboard[0].method.task_scheduler == "gradient"
    assert str(leaderboard[0].method) == "random, gradient"


def test_the_same_seeds_give_the_same(products: list[str]) -> None:
    spec = TaskRunSpec(_model(products), GRADIENT, 3, 32, 4)
    assert run_tasks(spec).best == run_tasks(spec).best
    assert run_tasks(spec).best != run_tasks(replace(spec, seed=4)).best
