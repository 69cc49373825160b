"""`tilewright lab`: compare methods of search on spaces whose every configuration was measured.

tilewright lab --seeds 100 --trials 512 --html curves.html
tilewright lab --space my-space.json --strategies random,evolutionary --cost-models ridge
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import json_option
from tilewright.cli.output import print_json, print_table, progress

if TYPE_CHECKING:
    from tilewright.tune.lab.metrics import Quartiles
    from tilewright.tune.lab.ring import Standing

COUNT = click.IntRange(min=1)


@click.command("lab")
@click.option(
    "--space",
    "spaces",
    multiple=True,
    metavar="NAME|FILE",
    help="May be repeated; see `tilewright list spaces`. [default: all of those]",
)
@click.option("--strategies", default="random,genetic,annealing,evolutionary", show_default=True)
@click.option(
    "--cost-models", default="lightgbm", show_default=True, help="For those that use one."
)
@click.option("--trials", type=COUNT, default=256, show_default=True, help="Measurements a run.")
@click.option("--batch", type=COUNT, default=16, show_default=True, help="Measured at once.")
@click.option("--seeds", type=COUNT, default=20, show_default=True, help="Runs of each method.")
@click.option("--seed", type=int, default=0, show_default=True, help="The first of the seeds.")
@click.option("--jobs", type=COUNT, default=1, show_default=True, help="Runs at once.")
@click.option("--html", type=click.Path(path_type=Path), help="Write curves to this file.")
@json_option
def lab_command(
    spaces: tuple[str, ...],
    strategies: str,
    cost_models: str,
    trials: int,
    batch: int,
    seeds: int,
    seed: int,
    jobs: int,
    html: Path | None,
    as_json: bool,
) -> None:
    """Run strategies with cost models on measured spaces and print the leaderboard."""
    from tilewright.tune.lab.chart import html_page
    from tilewright.tune.lab.method import methods
    from tilewright.tune.lab.ring import Settings, compete
    from tilewright.tune.space.table import SPACES

    chosen = methods(_names(strategies), _names(cost_models))
    settings = Settings(trials, batch, seeds, seed, jobs)
    with progress() as show:
        standings = compete(spaces or tuple(SPACES), chosen, settings, show)
    if html is not None:
        html.write_text(html_page(standings))
    if as_json:
        print_json([_as_json(standing) for standing in standings])
    else:
        _print(standings, trials)


def _names(given: str) -> list[str]:
    return [name for name in (part.strip() for part in given.split(",")) if name]


def _print(standings: Sequence[Standing], trials: int) -> None:
    columns = ["space", "method", "t95", "reached", "regret@64", "at the end", "wall s"]
    rows = [
        [
            one.space,
            str(one.method),
            _text(one.t95, ".0f"),
            f"{one.reached:.0%}",
            _text(one.regret(64), ".1%"),
            _text(one.regret(trials), ".1%"),
            one.wall,
        ]
        for one in standings
    ]
    print_table(columns, rows)
    click.echo("median (quartiles); t95: trials to within 5 % of the optimum; wall s: a run")


def _text(figures: Quartiles, form: str) -> str:
    low, median, high = (
        format(figure, form) if math.isfinite(figure) else "never"
        for figure in (figures.low, figures.median, figures.high)
    )
    return f"{median} ({low}, {high})"


def _as_json(standing: Standing) -> dict[str, Any]:
    return {
        "space": standing.space,
        "strategy": standing.method.strategy,
        "cost_model": standing.method.cost_model,
        "optimum_seconds": standing.optimum,
        "t95": _quartiles(standing.t95),
        "reached": standing.reached,
        "regret@64": _quartiles(standing.regret(64)),
        "wall_seconds": standing.wall,
        "runs": [
            {"seed": r.seed, "failures": r.failures, "wall_seconds": r.wall, "best": r.best}
            for r in standing.runs
        ],
    }


def _quartiles(figures: Quartiles) -> dict[str, float]:
    return {"low": figures.low, "median": figures.median, "high": figures.high}
