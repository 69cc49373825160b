"""`tilewright lab record`: measure schedules of a model's kernels once, as a tabular space.

tilewright lab record gemm.onnx conv.onnx --out spaces --limit 300
tilewright lab --space spaces/gemm.json.gz
tilewright lab refresh spaces/*.json.gz        # new features, old times
"""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.cli.commands.lab.options import COUNT
from tilewright.cli.options import threads_option
from tilewright.cli.output import progress
from tilewright.core.errors import ConfigError

SOURCE = "measured by `tilewright lab record` on {}"
LICENCE = "that of tilewright"


@click.command("record")
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path(), help="The folder.")
@click.option("--limit", type=COUNT, default=300, show_default=True, help="Candidates a kernel.")
@click.option("--space", default="constructed", show_default=True, help="Of schedules.")
@threads_option
def record_command(
    models: tuple[Path, ...], out: Path, limit: int, space: str, threads: int | None
) -> None:
    """Measure candidates of each model's heaviest kernel, and write them as a space to replay.

    The machine should do nothing else. A model called model.onnx goes by the name of its folder.
    """
    from tilewright.driver.tuning.extract_tasks import extract_tasks
    from tilewright.driver.tuning.record_space import record_task
    from tilewright.driver.tuning.session import BUILD_WORKER
    from tilewright.target.host import host
    from tilewright.tune.measure.measurer import Measurer, MeasureSettings
    from tilewright.tune.space.table import SCHEDULE_SPACES
    from tilewright.tune.space.tabular_files import write_space

    SCHEDULE_SPACES.get(space)
    target = host()
    out.mkdir(parents=True, exist_ok=True)
    with Measurer(BUILD_WORKER, MeasureSettings(builders=target.cores)) as measurer:
        for model in models:
            name = model.parent.name if model.stem == "model" else model.stem
            tasks = extract_tasks(model, target).tasks
            if not tasks:
                raise ConfigError("lab.no-kernels", f"{model} has no kernel to measure")
            task = max(tasks, key=lambda one: one.about.flops * one.about.weight)
            with progress() as show:
                found = record_task(name, task, target, measurer, limit, threads or 0, show, space)
            path = out / f"{name}.json.gz"
            write_space(path, found, SOURCE.format(target.cpu), LICENCE)
            click.echo(
                f"{path}: {len(found)} candidates of {task.about.name}, the best in "
                f"{found.optimum * 1e3:.3g} ms, {found.share_within(0.05):.1%} within 5 % of it"
            )


@click.command("refresh")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def refresh_command(files: tuple[Path, ...]) -> None:
    """Write files of recorded spaces anew with the features that this version has."""
    from tilewright.tune.benchmark.recompute_features import refreshed
    from tilewright.tune.space.tabular_files import read_origin, read_space, write_space

    for path in files:
        write_space(path, refreshed(read_space(path)), *read_origin(path))
        click.echo(f"{path}: refreshed")
