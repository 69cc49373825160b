"""`tilewright lab`: compare methods of search on spaces whose every configuration was measured.

tilewright lab --seeds 100 --trials 512 --html curves.html --png curves.png
tilewright lab --space my-space.json --strategies random,evolutionary --cost-models ridge
tilewright lab transfer
"""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.cli.commands.lab.leaderboard import names, show_leaderboard
from tilewright.cli.commands.lab.options import run_options
from tilewright.cli.lazy_group import LazyGroup
from tilewright.cli.options import json_option
from tilewright.cli.output import progress

# Other benchmarks of search.
COMMANDS = {
    "accuracy": "tilewright.cli.commands.lab.accuracy:accuracy_command",
    "live": "tilewright.cli.commands.lab.live:live_command",
    "pretrain": "tilewright.cli.commands.lab.pretrain:pretrain_command",
    "record": "tilewright.cli.commands.lab.record:record_command",
    "refresh": "tilewright.cli.commands.lab.record:refresh_command",
    "tasks": "tilewright.cli.commands.lab.tasks:tasks_command",
    "transfer": "tilewright.cli.commands.lab.transfer:transfer_command",
}


@click.command("lab", cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@click.option(
    "--space",
    "spaces",
    multiple=True,
    metavar="NAME|FILE",
    help="May be repeated; see `tilewright list recorded-spaces`. [default: all of those]",
)
@click.option("--strategies", default="random,genetic,annealing,evolutionary", show_default=True)
@click.option(
    "--cost-models", default="lightgbm", show_default=True, help="For those that use one."
)
@run_options(trials=256, batch=16, seeds=20)
@json_option
@click.pass_context
def lab_command(
    ctx: click.Context,
    spaces: tuple[str, ...],
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
    """Run strategies with cost models on measured spaces and print the leaderboard.

    Without a command: strategies and cost models against each other.
    """
    if ctx.invoked_subcommand is not None:
        return
    from tilewright.tune.benchmark.compare_methods import BenchmarkSettings, compare_methods
    from tilewright.tune.method import methods
    from tilewright.tune.space.table import SPACES

    chosen = methods(names(strategies), names(cost_models))
    settings = BenchmarkSettings(trials, batch, seeds, seed, jobs)
    with progress() as show:
        leaderboard = compare_methods(spaces or tuple(SPACES), chosen, settings, show)
    show_leaderboard(leaderboard, trials, html, png, as_json)
