"""`tilewright explain`: what the compiler did to a model, as text or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.cli.options import (
    dims_option,
    disable_pass_option,
    inputs_option,
    json_option,
    model_argument,
    nearest_workload_option,
    precision_option,
    seed_option,
    target_option,
    threads_option,
    tuned_option,
)
from tilewright.cli.output import print_json, progress

if TYPE_CHECKING:
    from tilewright.driver.options import CompileOptions
    from tilewright.runtime.roofline.roofline import Roofline

# What is counted of a model in segments, for one that is compiled whole.
WHOLE = "1 segment, 0 operators on the host"


@click.command("explain")
@model_argument
@click.option(
    "--passes", is_flag=True, help="Only the effect of each pass: nodes, kernels, bytes, time."
)
@click.option(
    "--measure", is_flag=True, help="With --passes: also the measured time without each pass."
)
@inputs_option
@click.option("--random", is_flag=True, help="Draw inputs, for a model in segments.")
@seed_option
@target_option
@precision_option
@disable_pass_option
@tuned_option
@nearest_workload_option
@threads_option
@dims_option
@json_option
def explain_command(
    model: Path,
    passes: bool,
    measure: bool,
    given: Sequence[str],
    random: bool,
    seed: int,
    target: str,
    precision: str,
    disable_passes: Sequence[str],
    tuned: Path | None,
    nearest_workload: bool,
    threads: int | None,
    dims: Mapping[str, int],
    as_json: bool,
) -> None:
    """Say what each pass did to MODEL, what was fused and scheduled how, and the memory plan.

    For this machine it also says the least time each kernel can take here, and what bounds it. A
    segmented model is compiled while it runs: with inputs, given or drawn, it is run first, so that
    its segments are there to be explained.
    """
    from tilewright.cli.source import is_saved
    from tilewright.core.errors import ConfigError
    from tilewright.driver.options import make_options
    from tilewright.frontends.onnx.segments.data_dependent import DataDependent

    if measure and not passes:
        raise click.UsageError("--measure belongs to --passes")
    if is_saved(model):
        if passes:
            raise ConfigError("explain.saved", f"{model} is compiled", help="give the .onnx file")
        _explain_saved(model, as_json)
        return
    options = make_options(
        target,
        precision,
        dims,
        disable_passes=disable_passes,
        threads=threads,
        tuned=tuned,
        nearest_workload=nearest_workload,
    )
    if passes:
        from tilewright.cli.pass_table import explain_passes

        explain_passes(model, options, measure, as_json)
        return
    try:
        _explain_whole(model, options, as_json)
    except DataDependent:
        _explain_stages(model, given, random, seed, options, as_json)


def _explain_whole(model: Path, options: CompileOptions, as_json: bool) -> None:
    from tilewright.cli.source import read_source
    from tilewright.driver.compile_graph import lower
    from tilewright.driver.report.explain import explain_build
    from tilewright.driver.report.report_data import report_data
    from tilewright.driver.report.step_rows import step_rows

    with progress() as show:
        build = lower(read_source(model), replace(options, progress=show))
    roofline = _roofline(options.threads) if options.target_name == "native" else None
    rows = step_rows(build)
    if as_json:
        print_json(report_data(build, rows, roofline))
    else:
        click.echo(f"{WHOLE}\n\n{explain_build(build, rows, roofline)}")


def _roofline(threads: int | None) -> Roofline:
    """Those of this machine, for the least time that a kernel can take."""
    from tilewright.runtime.roofline.machine_roofline import machine_roofline
    from tilewright.target.host import host

    return machine_roofline(threads or host().cores, show=lambda what: click.echo(what, err=True))


def _explain_stages(
    path: Path,
    given: Sequence[str],
    random: bool,
    seed: int,
    options: CompileOptions,
    as_json: bool,
) -> None:
    from tilewright.cli.input_files import given_inputs, parse_assignments
    from tilewright.cli.source import open_model
    from tilewright.driver.segmented.model import SegmentedModel

    with open_model(path, options) as model:
        assert isinstance(model, SegmentedModel)
        if given or random:
            dims = options.dims if random else None
            model.run(given_inputs(model.inputs, parse_assignments(given), dims, seed))
        if as_json:
            about = {
                "native_segments": model.segments,
                "break_reason": str(model.break_reason),
                "explain": model.explain(),
            }
            print_json({**model.operators.data(), **about})
        else:
            click.echo(model.explain())


def _explain_saved(model: Path, as_json: bool) -> None:
    from tilewright.runtime.container import read_container

    manifest = read_container(model).manifest
    if as_json:
        keys = ("inputs", "outputs", "kernels", "schedules", "explain")
        print_json({key: manifest[key] for key in keys if key in manifest})
    else:
        whole = [] if "segmented" in manifest else [WHOLE]
        click.echo("\n\n".join([*whole, manifest["explain"]]))
