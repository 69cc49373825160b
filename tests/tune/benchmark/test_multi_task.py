from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tilewright.tune.benchmark.compare_methods import Settings
from tilewright.tune.benchmark.multi_task import Model, TasksJob, compete_tasks, run_tasks
from tilewright.tune.method import Method
from tilewright.tune.space.table import replay_space

ROUND_ROBIN = Method("random", task_scheduler="round-robin")
GRADIENT = Method("random", task_scheduler="gradient")


def _model(products: list[str]) -> Model:
    return Model("products", tuple(zip(products, (1.0, 1.0, 1.0, 8.0), strict=True)))


def test_latency_after_each_trial(products: list[str]) -> None:
    model = _model(products)
    run = run_tasks(TasksJob(model, ROUND_ROBIN, 0, 40, 4))
    assert len(run.best) == 40
    assert run.best[11] == math.inf  # the fourth task has had no batch yet
    assert list(run.best) == sorted(run.best, reverse=True)
    best = [replay_space(name).optimum for name in products]
    assert model.optimum == pytest.approx(best[0] + best[1] + best[2] + 8 * best[3])
    assert run.best[-1] >= model.optimum


def test_gradient_goes_where_the_time_is(products: list[str]) -> None:
    settings = Settings(trials=96, batch=4, seeds=10)
    standings = compete_tasks(_model(products), [ROUND_ROBIN, GRADIENT], settings)
    by_name = {one.method.task_scheduler: one for one in standings}
    assert by_name["gradient"].mean_t95 < by_name["round-robin"].mean_t95
    assert standings[0].method.task_scheduler == "gradient"
    assert str(standings[0].method) == "random, gradient"


def test_the_same_seeds_give_the_same(products: list[str]) -> None:
    job = TasksJob(_model(products), GRADIENT, 3, 32, 4)
    assert run_tasks(job).best == run_tasks(job).best
    assert run_tasks(job).best != run_tasks(replace(job, seed=4)).best
