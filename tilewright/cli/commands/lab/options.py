"""Options that the commands of `tilewright lab` have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

COUNT = click.IntRange(min=1)

programs_option = click.option(
    "--space",
    "spaces",
    multiple=True,
    metavar="NAME|FILE",
    help="A measured space of programs; may be repeated. [default: all that come along]",
)


def run_options(trials: int, batch: int, seeds: int) -> Callable[[Any], Any]:
    """How often and how long to search, with these defaults."""
    options = (
        click.option("--trials", type=COUNT, default=trials, show_default=True, help="A run."),
        click.option("--batch", type=COUNT, default=batch, show_default=True, help="At once."),
        click.option("--seeds", type=COUNT, default=seeds, show_default=True, help="Runs of each."),
        click.option("--seed", type=int, default=0, show_default=True, help="The first seed."),
        click.option("--jobs", type=COUNT, default=1, show_default=True, help="Processes at once."),
        click.option("--html", type=click.Path(path_type=Path), help="Write curves here."),
        click.option("--png", type=click.Path(path_type=Path), help="The same as a picture."),
    )

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
