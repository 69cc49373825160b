"""`tilewright explain`: what the compiler did to a model, as text or as a page of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from tilewright.cli.options import dims_option, json_option, model_argument, target_option
from tilewright.cli.output import print_json, progress


@click.command("explain")
@model_argument
@click.option("--html", type=click.Path(path_type=Path), help="Write a page that needs no other.")
@target_option
@dims_option
@json_option
def explain_command(
    model: Path, html: Path | None, target: str, dims: Mapping[str, int], as_json: bool
) -> None:
    """Say what each pass did to MODEL, what was fused and scheduled how, and the memory plan."""
    from tilewright.cli.source import is_saved, read_source
    from tilewright.core.errors import ConfigError

    if is_saved(model):
        if html is not None:
            raise ConfigError(
                "explain.saved", f"{model} is compiled", help="give the .onnx file for a page"
            )
        _explain_saved(model, as_json)
        return
    from tilewright.cli.emit import write_text
    from tilewright.driver.compiler import Timings, lower
    from tilewright.driver.explain import explain_build
    from tilewright.driver.report import report_data, report_page

    timings = Timings()
    with progress() as show:
        build = lower(read_source(model), target=target, dims=dims, timings=timings, progress=show)
    if html is not None:
        click.echo(write_text(html, report_page(model.name, build, timings)))
    elif as_json:
        print_json(report_data(build, timings))
    else:
        click.echo(explain_build(build, timings.passes))


def _explain_saved(model: Path, as_json: bool) -> None:
    from tilewright.runtime.container import read_container

    manifest = read_container(model).manifest
    if as_json:
        print_json({key: manifest[key] for key in ("inputs", "outputs", "kernels", "explain")})
    else:
        click.echo(manifest["explain"])
