"""`tilewright run`: run a model once and say what came out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tilewright.cli.options import (
    checks_option,
    dims_option,
    disable_pass_option,
    inputs_option,
    json_option,
    model_argument,
    nearest_workload_option,
    no_cache_option,
    precision_option,
    seed_option,
    target_option,
    threads_option,
    tuned_option,
)
from tilewright.cli.output import print_json, print_table


@click.command("run")
@model_argument
@inputs_option
@click.option("--random", is_flag=True, help="Draw the inputs that are not given.")
@seed_option
@dims_option
@threads_option
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    help="Save each output there as <name>.npy.",
)
@click.option("--profile", is_flag=True, help="Also time each kernel.")
@target_option
@precision_option
@disable_pass_option
@checks_option
@tuned_option
@nearest_workload_option
@no_cache_option
@json_option
def run_command(
    model: Path,
    given: Sequence[str],
    random: bool,
    seed: int,
    dims: Mapping[str, int],
    threads: int | None,
    output_dir: Path | None,
    profile: bool,
    target: str,
    precision: str,
    disable_passes: Sequence[str],
    checks: str,
    tuned: Path | None,
    nearest_workload: bool,
    no_cache: bool,
    as_json: bool,
) -> None:
    """Run MODEL (.onnx, .pt2, .tw or .graph) once and summarise its outputs."""
    from tilewright.cli.input_files import given_inputs, parse_assignments, save_arrays, summary
    from tilewright.cli.source import open_model
    from tilewright.driver.options import make_options

    files = parse_assignments(given)
    options = make_options(
        target,
        precision=precision,
        disable_passes=disable_passes,
        checks=checks,
        dims=dims,
        threads=threads,
        cache=not no_cache,
        tuned=tuned,
        nearest_workload=nearest_workload,
    )
    with open_model(model, options) as executable:
        inputs = given_inputs(executable.inputs, files, dims if random else None, seed)
        start = time.perf_counter()
        outputs = executable.run(inputs)
        milliseconds = (time.perf_counter() - start) * 1e3
        ordered = [inputs[port.name] for port in executable.inputs]
        times = str(executable.profile(*ordered)) if profile else None
    rows = [summary(name, array) for name, array in outputs.items()]
    for name, path in save_arrays(output_dir, outputs).items() if output_dir else ():
        next(row for row in rows if row["name"] == name)["file"] = str(path)
    _report(rows, milliseconds, times, as_json)


def _report(
    rows: list[dict[str, Any]], milliseconds: float, times: str | None, as_json: bool
) -> None:
    if as_json:
        print_json({"milliseconds": milliseconds, "outputs": rows, "profile": times})
        return
    heads = ["output", "dtype", "shape", "min", "max", "mean", "not finite"]
    keys = ["name", "dtype", "shape", "min", "max", "mean", "not_finite"]
    if any("file" in row for row in rows):
        heads, keys = [*heads, "file"], [*keys, "file"]
    cells = [["-" if row.get(k) is None else row[k] for k in keys] for row in rows]
    print_table(heads, cells)
    click.echo(f"{milliseconds:.3f} ms, the first run")
    if times is not None:
        click.echo(times)
