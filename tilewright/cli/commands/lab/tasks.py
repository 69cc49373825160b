"""`tilewright lab tasks`: task schedulers on the tasks of a model, as tabular spaces."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.cli.commands.lab.leaderboard import names, show_leaderboard
from tilewright.cli.commands.lab.options import run_options
from tilewright.cli.options import json_option
from tilewright.cli.output import progress
from tilewright.core.errors import ConfigError


@click.command("tasks")
@click.option(
    "--space",
    "spaces",
    multiple=True,
    metavar="NAME|FILE[=WEIGHT]",
    help="A task, and how often the model runs it; may be repeated. [default: all, once each]",
)
@click.option("--task-schedulers", default="round-robin,gradient", show_default=True)
@click.option("--strategy", default="evolutionary", show_default=True)
@click.option("--cost-model", default="lightgbm", show_default=True)
@run_options(trials=512, batch=8, seeds=20)
@json_option
def tasks_command(
    spaces: tuple[str, ...],
    task_schedulers: str,
    strategy: str,
    cost_model: str,
    trials: int,
    batch: int,
    seeds: int,
    seed: int,
    jobs: int,
    html: Path | None,
    png: Path | None,
    as_json: bool,
) -> None:
    """Search all tasks of a model within one budget, its latency being what counts."""
    from dataclasses import replace

    from tilewright.tune.benchmark.compare_methods import BenchmarkSettings
    from tilewright.tune.benchmark.multi_task import TabularModel, compare_task_schedulers
    from tilewright.tune.method import methods
    from tilewright.tune.space.table import program_spaces
    from tilewright.tune.task_scheduler.table import TASK_SCHEDULERS

    for name in names(task_schedulers):
        TASK_SCHEDULERS.get(name)
    (method,) = methods([strategy], [cost_model])
    model = TabularModel("model", tuple(map(_weighted, spaces or program_spaces())))
    chosen = [replace(method, task_scheduler=name) for name in names(task_schedulers)]
    with progress() as show:
        settings = BenchmarkSettings(trials, batch, seeds, seed, jobs)
        leaderboard = compare_task_schedulers(model, chosen, settings, show)
    show_leaderboard(leaderboard, trials, html, png, as_json)


def _weighted(text: str) -> tuple[str, float]:
    name, equals, weight = text.rpartition("=")
    if not equals:
        return text, 1.0
    try:
        number = float(weight)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ConfigError("lab.weight", f"{weight!r} is no weight of a task", help="write NAME=3")
    return name, number
