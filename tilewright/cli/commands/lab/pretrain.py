"""`tilewright lab pretrain`: a cost model of many tasks, in a file."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.cli.commands.lab.options import programs_option


@click.command("pretrain")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@programs_option
@click.option(
    "--records",
    "files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A file of records to learn from, instead of spaces; may be repeated.",
)
@click.option("--seed", type=int, default=0, show_default=True)
def pretrain_command(
    file: Path, spaces: tuple[str, ...], files: tuple[Path, ...], seed: int
) -> None:
    """Write to FILE what LightGBM learns from all spaces, or from records, together.

    `--cost-models pretrained:FILE` and `tilewright tune --cost pretrained:FILE` search with it.
    """
    from tilewright.target.host import host
    from tilewright.tune.benchmark.accuracy import program_task
    from tilewright.tune.cost.pretrained import pretrain, write_model
    from tilewright.tune.cost.training_data import read_training_data
    from tilewright.tune.space.table import program_spaces

    named = spaces if spaces or files else program_spaces()
    tasks = [program_task(name) for name in named]
    tasks += [task for path in files for task in read_training_data(path, host())]
    write_model(file, pretrain(tasks, seed))
    rows = sum(len(seconds) for _, seconds in tasks)
    click.echo(f"{file}: learnt from {rows} programs of {len(tasks)} tasks")
