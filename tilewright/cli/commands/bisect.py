"""`tilewright bisect`: which pass, fusion or schedule first changes a result, and in which node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from tilewright.cli.options import (
    dims_option,
    inputs_option,
    json_option,
    model_argument,
    precision_option,
    seed_option,
    threads_option,
)
from tilewright.cli.output import print_json, progress

FOUND = 1


@click.command("bisect")
@model_argument
@inputs_option
@seed_option
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="The largest difference allowed, relative to the largest magnitude of a result. "
    "[default: by precision and type, 0.001 for f32]",
)
@dims_option
@threads_option
@precision_option
@json_option
def bisect_command(
    model: Path,
    given: Sequence[str],
    seed: int,
    tolerance: float | None,
    dims: Mapping[str, int],
    threads: int | None,
    precision: str,
    as_json: bool,
) -> int:
    """Find the first pass, fusion or schedule that changes a result of MODEL (.onnx or .graph).

    What MODEL means is computed by the interpreter; inputs that are not given are drawn. The exit
    status is 0 if the machine code is right, and 1 if something was found.
    """
    from tilewright.cli.input_files import given_inputs, parse_assignments
    from tilewright.cli.source import is_saved, model_ports, read_source
    from tilewright.core.errors import ConfigError
    from tilewright.driver.bisect.bisect import bisect

    if is_saved(model):
        raise ConfigError(
            "bisect.saved", f"{model} is compiled", help="give the .onnx file that it was made of"
        )
    inputs = given_inputs(model_ports(model, dims)[0], parse_assignments(given), dims, seed)
    with progress() as show:
        report = bisect(
            read_source(model),
            inputs,
            dims=dims,
            precision=precision,
            threads=threads,
            allowed=tolerance,
            progress=show,
        )
    if as_json:
        print_json(report.data())
    else:
        click.echo(report.text())
    return 0 if report.finding is None else FOUND
