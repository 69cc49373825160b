"""`tilewright explore`: everything the compiler did to a model, as a page to look around in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.cli.options import (
    dims_option,
    disable_pass_option,
    model_argument,
    nearest_workload_option,
    overrides_option,
    precision_option,
    target_option,
    threads_option,
    tuned_option,
)
from tilewright.cli.output import progress

if TYPE_CHECKING:
    from tilewright.driver.options import CompileOptions
    from tilewright.driver.report.explorer.document import ExploredModel


@click.command("explore")
@model_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The page. [default: the model's name with .html]",
)
@click.option("--serve", is_flag=True, help="Serve the page, and build it anew when MODEL changes.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8350, show_default=True, help="With --serve."
)
@click.option("--trace", type=click.Path(path_type=Path), help="Write a trace for Chrome, too.")
@target_option
@precision_option
@disable_pass_option
@tuned_option
@nearest_workload_option
@overrides_option
@threads_option
@dims_option
def explore_command(
    model: Path,
    output: Path | None,
    serve: bool,
    port: int,
    trace: Path | None,
    target: str,
    precision: str,
    disable_passes: Sequence[str],
    tuned: Path | None,
    nearest_workload: bool,
    overrides: Path | None,
    threads: int | None,
    dims: Mapping[str, int],
) -> None:
    """Write a page that shows what was made of MODEL: one HTML file that needs no other.

    It has the graph before and after each pass, what was fused and what was not and why, every
    kernel from its tensor expression to its assembly, the reasons of its schedule, the memory plan,
    and the least time that each kernel can take. `tilewright profile --html` adds measured times.
    """
    from tilewright.cli.explorer_files import write_explorer
    from tilewright.cli.source import is_saved
    from tilewright.core.errors import ConfigError
    from tilewright.driver.options import make_options

    if is_saved(model):
        raise ConfigError("explore.saved", f"{model} is compiled", help="give the .onnx file")
    options = make_options(
        target,
        precision,
        dims,
        disable_passes=disable_passes,
        threads=threads,
        overrides=overrides,
        tuned=tuned,
        nearest_workload=nearest_workload,
    )
    if serve:
        _serve(model, options, port)
    else:
        write_explorer(_explored(model, options), output or model.with_suffix(".html"), trace)


def _explored(model: Path, options: CompileOptions) -> ExploredModel:
    from tilewright.cli.source import read_source
    from tilewright.driver.report.explorer.explore import explore
    from tilewright.driver.report.pass_effects import roofline_of
    from tilewright.runtime.roofline.machine_roofline import machine_roofline
    from tilewright.target.host import host

    native = None
    if options.target_name == "native":
        native = machine_roofline(
            options.threads or host().cores, show=lambda what: click.echo(what, err=True)
        )
    with progress() as show:
        roofline = roofline_of(options.target, native)
        source = read_source(model)
        return explore(model.name, source, replace(options, progress=show), roofline)


def _serve(model: Path, options: CompileOptions, port: int) -> None:
    from tilewright.driver.report.explorer.server import HOST, LiveExplorer, make_server

    explorer = LiveExplorer(model, lambda: _explored(model, options))
    with make_server(explorer, port) as server:
        click.echo(f"http://{HOST}:{server.server_address[1]}/  (Ctrl-C ends it)")
        server.serve_forever()
