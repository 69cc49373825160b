"""`tilewright lab pretrain`: a cost model of many tasks, in a file."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.cli.lab_options import programs_option


@click.command("pretrain")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@programs_option
@click.option("--seed", type=int, default=0, show_default=True)
def pretrain_command(file: Path, spaces: tuple[str, ...], seed: int) -> None:
    """Write to FILE what LightGBM learns from all spaces together.

    `--cost-models pretrained:FILE` searches with it.
    """
    from tilewright.tune.cost.pretrained import pretrain, write_model
    from tilewright.tune.lab.accuracy import program_task
    from tilewright.tune.space.table import program_spaces

    tasks = [program_task(name) for name in spaces or program_spaces()]
    write_model(file, pretrain(tasks, seed))
    rows = sum(len(seconds) for _, seconds in tasks)
    click.echo(f"{file}: learnt from {rows} programs of {len(tasks)} tasks")
