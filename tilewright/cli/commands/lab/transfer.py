"""`tilewright lab transfer`: what a cost model that has seen other tasks saves on new ones."""

from __future__ import annotations

import math
from pathlib import Path

import click

from tilewright.cli.commands.lab.leaderboard import show_leaderboard
from tilewright.cli.commands.lab.options import programs_option, run_options
from tilewright.cli.options import json_option
from tilewright.cli.output import progress


@click.command("transfer")
@programs_option
@click.option("--strategy", default="evolutionary", show_default=True)
@run_options(trials=128, batch=8, seeds=20)
@json_option
def transfer_command(
    spaces: tuple[str, ...],
    strategy: str,
    trials: int,
    batch: int,
    seeds: int,
    seed: int,
    jobs: int,
    html: Path | None,
    png: Path | None,
    as_json: bool,
) -> None:
    """Learn from one half of the spaces, search the other half, and the other way round."""
    from tilewright.tune.benchmark.compare_methods import BenchmarkSettings
    from tilewright.tune.benchmark.transfer import saved, transfer
    from tilewright.tune.space.table import program_spaces

    settings = BenchmarkSettings(trials, batch, seeds, seed, jobs)
    with progress() as show:
        leaderboard = transfer(spaces or program_spaces(), strategy, settings, show)
    show_leaderboard(leaderboard, trials, html, png, as_json)
    if not as_json:
        ratios = saved(leaderboard)
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        click.echo(
            f"trials to t95 with pre-training, relative to those without: {mean:.2f} "
            "(geometric mean over the spaces of means over the seeds)"
        )
