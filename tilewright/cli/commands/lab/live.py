"""`tilewright lab live`: methods of search on the kernels of a model, measured on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.cli.commands.lab.leaderboard import names, show_leaderboard
from tilewright.cli.commands.lab.options import run_options
from tilewright.cli.options import json_option, model_argument
from tilewright.cli.output import progress


@click.command("live")
@model_argument
@click.option("--strategies", default="random,annealing,evolutionary", show_default=True)
@click.option("--cost-models", default="lightgbm", show_default=True)
@run_options(trials=64, batch=8, seeds=3)
@json_option
def live_command(
    model: Path,
    strategies: str,
    cost_models: str,
    trials: int,
    batch: int,
    seeds: int,
    seed: int,
    jobs: int,
    html: Path | None,
    png: Path | None,
    as_json: bool,
) -> None:
    """Compare strategies and cost models on every kernel of a model; one run at a time.

    `t95` and `regret` are against the best that any of them found.
    """
    from tilewright.driver.tuning.benchmark_live import compare_methods_live
    from tilewright.driver.tuning.extract_tasks import extract_tasks
    from tilewright.driver.tuning.session import BUILD_WORKER
    from tilewright.target.host import host
    from tilewright.tune.benchmark.compare_methods import BenchmarkSettings
    from tilewright.tune.measure.measurer import Measurer, MeasureSettings
    from tilewright.tune.method import methods

    target = host()
    chosen = methods(names(strategies), names(cost_models))
    settings = BenchmarkSettings(trials, batch, seeds, seed)
    with Measurer(BUILD_WORKER, MeasureSettings(builders=jobs)) as measurer, progress() as show:
        tasks = extract_tasks(model, target).tasks
        leaderboard = compare_methods_live(tasks, target, chosen, settings, measurer, show)
    show_leaderboard(leaderboard, trials, html, png, as_json)
