"""Output of a leaderboard: a table, JSON with every run, curves as an HTML page or a PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.output import print_json, print_table

if TYPE_CHECKING:
    from tilewright.tune.benchmark.compare_methods import LeaderboardRow
    from tilewright.tune.benchmark.metrics import Quartiles


def names(given: str) -> list[str]:
    """The names in a list with commas."""
    return [name for name in (part.strip() for part in given.split(",")) if name]


def show_leaderboard(
    leaderboard: Sequence[LeaderboardRow],
    trials: int,
    html: Path | None,
    png: Path | None,
    as_json: bool,
) -> None:
    """Print a leaderboard, and write its curves where they are wanted."""
    if html is not None:
        from tilewright.tune.benchmark.plot_html import html_page

        html.write_text(html_page(leaderboard))
    if png is not None:
        from tilewright.tune.benchmark.plot_png import write_picture

        write_picture(png, leaderboard)
    if as_json:
        print_json([_as_json(row) for row in leaderboard])
    else:
        _print(leaderboard, trials)


def _print(leaderboard: Sequence[LeaderboardRow], trials: int) -> None:
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
        for one in leaderboard
    ]
    print_table(columns, rows)
    click.echo("median (quartiles); t95: trials to within 5 % of the optimum; wall s: a run")


def _text(figures: Quartiles, form: str) -> str:
    low, median, high = (
        format(figure, form) if math.isfinite(figure) else "never"
        for figure in (figures.low, figures.median, figures.high)
    )
    return f"{median} ({low}, {high})"


def _as_json(row: LeaderboardRow) -> dict[str, Any]:
    return {
        "space": row.space,
        "strategy": row.method.strategy,
        "cost_model": row.method.cost_model,
        "task_scheduler": row.method.task_scheduler,
        "optimum_seconds": row.optimum,
        "t95": _quartiles(row.t95),
        "mean_t95": row.mean_t95,
        "reached": row.reached,
        "regret@64": _quartiles(row.regret(64)),
        "wall_seconds": row.wall,
        "runs": [
            {"seed": r.seed, "failures": r.failures, "wall_seconds": r.wall, "best": r.best}
            for r in row.runs
        ],
    }


def _quartiles(figures: Quartiles) -> dict[str, float]:
    return {"low": figures.low, "median": figures.median, "high": figures.high}
