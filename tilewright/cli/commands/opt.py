"""`tilewright opt`: run graph passes one by one and print what they make of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from tilewright.cli.options import (
    dims_option,
    disable_pass_option,
    form_option,
    json_option,
    model_argument,
    precision_option,
    target_option,
)
from tilewright.cli.output import print_json


def _names(_: click.Context, __: click.Parameter, text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


@click.command("opt")
@model_argument
@click.option(
    "-p", "--passes", callback=_names, help="Comma-separated names. [default: as compile does]"
)
@click.option(
    "--print-after", callback=_names, help="Also print the graph after these passes, or `all`."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the result there.")
@click.option("--time-passes", is_flag=True, help="Say how long each pass took.")
@form_option
@target_option
@precision_option
@disable_pass_option
@dims_option
@json_option
def opt_command(
    model: Path,
    passes: Sequence[str] | None,
    print_after: Sequence[str] | None,
    output: Path | None,
    time_passes: bool,
    form: str,
    target: str,
    precision: str,
    disable_passes: Sequence[str],
    dims: Mapping[str, int],
    as_json: bool,
) -> None:
    """Run graph passes on MODEL (.onnx or .graph) and print the resulting graph."""
    from tilewright.cli.emit_text import emit_graph
    from tilewright.cli.source import read_source
    from tilewright.driver.options import make_options
    from tilewright.driver.pipeline import find_pass, passes_for
    from tilewright.driver.sources import import_graph
    from tilewright.ir.graph.text import print_graph
    from tilewright.passes.context import PassContext
    from tilewright.passes.manager import pass_name, run_passes

    options = make_options(target, precision, dims, disable_passes=disable_passes)
    whole = passes_for(options.target, options.disable_passes)
    chosen = whole if passes is None else tuple(map(find_pass, passes))
    shown = {p if p == "all" else pass_name(find_pass(p)) for p in print_after or ()}
    graph = import_graph(read_source(model), dims)
    context, texts = PassContext(options.target, precision), []
    log = context.log
    for p in chosen:
        graph = run_passes(graph, (p,), context)
        if shown & {pass_name(p), "all"}:
            change = "" if log.records[-1].changed else " (unchanged)"
            texts.append({"pass": f"{pass_name(p)}{change}", "graph": print_graph(graph, form)})
    report = emit_graph(graph, output, form)
    if as_json:
        print_json({**report, "after": texts, "passes": [asdict(r) for r in log.records]})
        return
    for text in texts:
        click.echo(f"# after {text['pass']}\n{text['graph']}")
    if not shown & {"all", *map(pass_name, chosen[-1:])}:  # else it has just been printed
        click.echo("".join(report.get("texts", {}).values()), nl=False)
    if time_passes:
        click.echo(log.table(), err=True)
