"""`tilewright compile`: a model into a file, or any stage of it as text.

tilewright compile model.onnx -o model.tw
tilewright compile model.onnx --emit loops -o kernels/     # one file a kernel
tilewright compile model.onnx --override-loops kernels/    # after editing some of them
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import (
    checks_option,
    dims_option,
    disable_pass_option,
    form_option,
    json_option,
    model_argument,
    nearest_workload_option,
    no_cache_option,
    overrides_option,
    precision_option,
    target_option,
    tuned_option,
    types_option,
)
from tilewright.cli.output import print_json, progress, size_text

if TYPE_CHECKING:
    from tilewright.driver.options import CompileOptions
    from tilewright.driver.segmented.model import BreakReason
    from tilewright.driver.timings import Timings

BINARY = {"tw": "{}.tw", "library": "lib{}.so"}
"""What is written as one file of bytes, and what that is called unless `-o` says."""


@click.command("compile")
@model_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File, or for texts also a folder."
)
@click.option(
    "--emit",
    type=click.Choice([*BINARY, "graph", "loops", "llvm", "asm", "ptx"]),
    default="tw",
    show_default=True,
    help="A saved model, a C library, or the text of a stage.",
)
@form_option
@target_option
@precision_option
@disable_pass_option
@checks_option
@dims_option
@types_option
@overrides_option
@tuned_option
@nearest_workload_option
@click.option("--time-passes", is_flag=True, help="Say how long each stage and pass took.")
@no_cache_option
@json_option
def compile_command(
    model: Path,
    output: Path | None,
    emit: str,
    form: str,
    target: str,
    precision: str,
    disable_passes: Sequence[str],
    checks: str,
    dims: Mapping[str, int],
    types: Mapping[str, str] | tuple[str, ...] | None,
    overrides: Path | None,
    tuned: Path | None,
    nearest_workload: bool,
    time_passes: bool,
    no_cache: bool,
    as_json: bool,
) -> None:
    """Compile MODEL (.onnx, .pt2, .pt or .graph)."""
    from tilewright.cli.source import read_source
    from tilewright.driver.options import make_options
    from tilewright.driver.timings import Timings

    timings = Timings()
    start = time.perf_counter()
    with progress() as show:
        options = make_options(
            target,
            precision,
            dims,
            disable_passes=disable_passes,
            checks=checks,
            cache=not (no_cache or time_passes),
            overrides=overrides,
            tuned=tuned,
            nearest_workload=nearest_workload,
            timings=timings,
            progress=show,
        )
        source = read_source(model, types)
        if emit in BINARY:
            path = output or Path(BINARY[emit].format(model.stem))
            report = _write_binary(source, path, emit, options)
        else:
            report = _write_text(source, output, emit, form, options)
    report["seconds"] = time.perf_counter() - start
    _report(report, timings, time_passes, as_json)


def _write_binary(source: Any, path: Path, emit: str, options: CompileOptions) -> dict[str, Any]:
    from tilewright.driver.compile import compile_container
    from tilewright.driver.segmented.model import BreakReason
    from tilewright.frontends.onnx.segments.data_dependent import DataDependent
    from tilewright.runtime.container import write_container
    from tilewright.runtime.export.shared_library import export_library

    try:
        container = compile_container(source, options)
    except DataDependent as error:
        reason = BreakReason(error.message, error.loc.node)
        return _write_segmented(source, path, emit, options, reason)
    manifest = container.manifest
    if emit == "library":
        export_library(container, path)
    else:
        write_container(path, manifest, container.objects, [(0, container.weights)])
    return {
        "files": [str(path)],
        "target": manifest["target"]["cpu"],
        "inputs": manifest["inputs"],
        "outputs": manifest["outputs"],
        "counters": manifest["counters"],
        "weights": container.weights.nbytes,
    }


def _write_segmented(
    source: Any, path: Path, emit: str, options: CompileOptions, reason: BreakReason
) -> dict[str, Any]:
    """Write a segmented model: each segment is compiled when it is first run."""
    from tilewright.driver.compile import compile_segmented

    with compile_segmented(source, options, reason) as model:
        if emit == "library":
            model.export_library(path)
        model.save(path)
        ports = {
            key: [{"name": p.name, "type": p.type} for p in some]
            for key, some in (("inputs", model.inputs), ("outputs", model.outputs))
        }
        report = {"files": [str(path)], "segmented": str(model.break_reason)}
        return {**report, **ports, **model.operators.data()}


def _write_text(
    source: Any, output: Path | None, emit: str, form: str, options: CompileOptions
) -> dict[str, Any]:
    from tilewright.cli.emit_text import emit_graph, emit_texts
    from tilewright.driver.compile_graph import lower, optimized_graph

    if emit == "graph":
        return emit_graph(optimized_graph(source, options), output, form)
    return emit_texts(lower(source, options), emit, output)


def _report(report: dict[str, Any], timings: Timings, time_passes: bool, as_json: bool) -> None:
    if as_json:
        if time_passes:
            report["stages"] = timings.stages
            report["passes"] = [asdict(record) for record in timings.passes.records]
        print_json(report)
        return
    for text in report.get("texts", {}).values():
        click.echo(text, nl=False)
    counters = report.get("counters")
    if counters is not None:
        what = ", ".join(f"{value} {name}" for name, value in counters.items())
        size = size_text(report["weights"])
        click.echo(f"{report['files'][0]}: {what}, {size} weights, {report['seconds']:.2f} s")
    elif "segmented" in report:
        host = sum(report["host_operators"].values())
        click.echo(
            f"{report['files'][0]}: a model in segments, each compiled when it is first run, "
            f"because of {report['segmented']}; {report['operators']} operators, {host} on the host"
        )
    elif report["files"]:
        click.echo(f"{len(report['files'])} files written, the first {report['files'][0]}")
    if time_passes:
        click.echo(timings.table(), err=True)
