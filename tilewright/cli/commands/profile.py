"""`tilewright profile`: where the time of a model goes, and how near each kernel is to the roof."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tilewright.cli.options import (
    dims_option,
    inputs_option,
    json_option,
    model_argument,
    no_cache_option,
    precision_option,
    seed_option,
    target_option,
    threads_option,
)
from tilewright.cli.output import print_json

if TYPE_CHECKING:
    from tilewright.driver.options import CompileOptions
    from tilewright.driver.segmented.profile import SegmentProfile
    from tilewright.runtime.model import CompiledModel
    from tilewright.runtime.profile import Profile
    from tilewright.runtime.roofline.roofline import Roofline


@click.command("profile")
@model_argument
@inputs_option
@click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True)
@click.option(
    "--top", type=click.IntRange(min=0), default=8, show_default=True, help="Kernels to describe."
)
@click.option("--html", type=click.Path(path_type=Path), help="Write `explore`'s page, with times.")
@click.option(
    "--trace", type=click.Path(path_type=Path), help="Write a trace for Chrome or Perfetto."
)
@seed_option
@dims_option
@threads_option
@target_option
@precision_option
@no_cache_option
@json_option
def profile_command(
    model: Path,
    given: Sequence[str],
    runs: int,
    top: int,
    html: Path | None,
    trace: Path | None,
    seed: int,
    dims: Mapping[str, int],
    threads: int | None,
    target: str,
    precision: str,
    no_cache: bool,
    as_json: bool,
) -> None:
    """Time each kernel of MODEL; inputs that are not given are drawn at random.

    Of a model in segments, it times each segment and each operator that runs on the host.

    The share of the roof is the least time that a kernel could take on this machine, of the time
    it took.
    """
    from tilewright.cli.input_files import given_inputs, parse_assignments
    from tilewright.cli.source import open_model
    from tilewright.driver.options import make_options
    from tilewright.runtime.model import CompiledModel

    files = parse_assignments(given)
    options = make_options(target, precision, dims, threads=threads, cache=not no_cache)
    if html is not None:
        _profile_page(model, options, files, Measuring(runs, seed, html, trace))
        return
    with open_model(model, options) as executable:
        inputs = given_inputs(executable.inputs, files, dims, seed)
        ordered = [inputs[port.name] for port in executable.inputs]
        found: Profile | SegmentProfile
        if isinstance(executable, CompiledModel):
            found = executable.profile(
                *ordered, runs=runs, roofline=_roofline(executable, precision)
            )
        else:
            found = executable.profile(*ordered, runs=runs)
        used = executable.threads
    if trace is not None:
        _write_trace(trace, found)
    if as_json:
        print_json({"model": str(model), "threads": used, **found.data()})
        return
    click.echo(found)
    for text in descriptions(found.data().get("kernels", [])[:top]):
        click.echo(text)


def _write_trace(path: Path, profile: Profile | SegmentProfile) -> None:
    """All runs as a trace of Chrome's."""
    from tilewright.cli.emit_text import write_text
    from tilewright.core.errors import UnsupportedError
    from tilewright.runtime.profile import Profile
    from tilewright.runtime.profile_trace import chrome_trace

    if not isinstance(profile, Profile):
        raise UnsupportedError(
            "profile.trace",
            "a trace of a model in segments",
            help="leave --trace out: the table has the time of each segment",
        )
    click.echo(write_text(path, json.dumps(chrome_trace(profile))), err=True)


class Measuring(NamedTuple):
    """How a model is measured, and where what is found goes."""

    runs: int
    seed: int
    html: Path
    trace: Path | None


def _profile_page(
    path: Path, options: CompileOptions, files: Mapping[str, Path], how: Measuring
) -> None:
    """The page of the explorer with measured times; equal kernels are compiled once."""
    from tilewright.cli.explorer_files import write_explorer
    from tilewright.cli.input_files import given_inputs
    from tilewright.cli.output import progress
    from tilewright.cli.source import is_saved, read_source
    from tilewright.core.errors import ConfigError
    from tilewright.driver.report.explorer.explore import explore_compiled

    if is_saved(path):
        raise ConfigError("explore.saved", f"{path} is compiled", help="give the .onnx file")
    with progress() as show:
        options = replace(options, progress=show)
        explored, model = explore_compiled(path.name, read_source(path), options)
    with model:
        inputs = given_inputs(model.inputs, files, options.dims, how.seed)
        ordered = [inputs[port.name] for port in model.inputs]
        roofline = _roofline(model, options.precision)
        profile = model.profile(*ordered, runs=how.runs, roofline=roofline)
    write_explorer(replace(explored, profile=profile, roofline=roofline), how.html, how.trace)


def _roofline(model: CompiledModel, precision: str) -> Roofline:
    """What the machine can do at best that the model runs on."""
    from tilewright.driver.precision import machine_for
    from tilewright.driver.report.gpu_roofline import gpu_roofline
    from tilewright.runtime.roofline.machine_roofline import machine_roofline
    from tilewright.target.gpu import GpuTarget
    from tilewright.target.registry import CUDA, resolve_gpu

    about = model.manifest["target"]
    if about["kind"] == "gpu":
        machine = machine_for(resolve_gpu(f"{CUDA} -arch={about['cpu']}"), precision)
        assert isinstance(machine, GpuTarget)
        return gpu_roofline(machine)
    return machine_roofline(model.threads, show=lambda what: click.echo(what, err=True))


def descriptions(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is known of kernels: how they were scheduled, what they compute."""
    from tilewright.driver.report.explain import place_lines, schedule_line

    texts = []
    for row in rows:
        schedule = schedule_line(row) if "rule" in row else ""
        lines = [f"\n{row['name']}  {schedule}".rstrip()]
        lines += [f"    {line}" for line in place_lines(row["places"])]
        texts.append("\n".join(lines))
    return texts
