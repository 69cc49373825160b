"""The table of `tilewright explain --passes`: what each graph pass did to a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.output import print_json, print_table
from tilewright.core.errors import ConfigError

if TYPE_CHECKING:
    from tilewright.driver.options import CompileOptions
    from tilewright.passes.context import PassContext


def explain_passes(path: Path, options: CompileOptions, measure: bool, as_json: bool) -> None:
    """Print the effect of each pass on a model; with `measure`, its time without the pass."""
    from tilewright.cli.source import read_source
    from tilewright.driver.pipeline import passes_for
    from tilewright.driver.report.pass_effects import pass_effects, roofline_of
    from tilewright.driver.sources import import_graph
    from tilewright.passes.context import PassContext
    from tilewright.runtime.roofline.machine_roofline import machine_roofline
    from tilewright.target.host import host

    native = options.target_name == "native"
    if measure and not native:
        raise ConfigError(
            "explain.measure", "only this machine can be measured", help="leave out --target"
        )
    source = read_source(path)
    measured = machine_roofline(options.threads or host().cores) if native else None
    context = PassContext(options.target, options.precision)
    effects = pass_effects(
        import_graph(source, options.dims),
        passes_for(options.target, options.disable_passes),
        context,
        roofline_of(options.target, measured),
    )
    rows = [asdict(effect) for effect in effects]
    if measure:
        _add_times(rows, source, options)
    if as_json:
        print_json({"passes": rows, "unchanged": _unchanged(context)})
        return
    print_table(_HEADINGS[: 5 + 2 * measure], [_cells(row, measure) for row in rows])
    click.echo(f"changed nothing: {', '.join(_unchanged(context)) or 'none'}")


_HEADINGS = (
    "pass",
    "nodes",
    "kernels",
    "MB moved",
    "estimated ms",
    "measured ms",
    "without it ms",
)


def _add_times(rows: list[dict[str, Any]], source: Any, options: CompileOptions) -> None:
    """Add to the first row of each pass that can be disabled what the model takes without it."""
    from tilewright.cli.input_files import random_inputs
    from tilewright.driver.compile import compile_model
    from tilewright.driver.pipeline import REQUIRED
    from tilewright.driver.report.pass_effects import IMPORT
    from tilewright.driver.report.pass_times import pass_times

    with compile_model(source, options) as model:
        inputs = random_inputs(model.inputs, options.dims, 0)
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["name"] != IMPORT and row["name"] not in REQUIRED:
            first.setdefault(row["name"], row)
    for found in pass_times(source, first, inputs, options):
        first[found.name] |= {"enabled_s": found.enabled_s, "disabled_s": found.disabled_s}


def _unchanged(context: PassContext) -> list[str]:
    """The passes that changed nothing in any of their runs."""
    changed = {r.name for r in context.log.records if r.changed}
    return [n for n in dict.fromkeys(r.name for r in context.log.records) if n not in changed]


def _cells(row: Mapping[str, Any], measure: bool) -> list[object]:
    keys = ("estimated_s", "enabled_s", "disabled_s") if measure else ("estimated_s",)
    times = [f"{row[key] * 1e3:.4f}" if row.get(key) is not None else "" for key in keys]
    return [row["name"], row["nodes"], row["kernels"], f"{row['bytes'] / 1e6:.3f}", *times]
