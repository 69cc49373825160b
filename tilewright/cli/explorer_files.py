"""The files of the explorer: its page, and a trace for Chrome."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.emit_text import write_text
from tilewright.cli.output import progress
from tilewright.driver.report.explorer.document import explorer_document
from tilewright.driver.report.explorer.page import explorer_page, model_texts

if TYPE_CHECKING:
    from tilewright.driver.report.explorer.document import ExploredModel


def write_explorer(model: ExploredModel, page: Path, trace: Path | None) -> None:
    """Write the page of a model, and the trace if it is wanted; say where they are."""
    document = explorer_document(model)
    kernels = len(document["kernels"])

    def shown(texts: Iterator[tuple[str, Mapping[str, Any]]]) -> Iterator[Any]:
        for number, pair in enumerate(texts, start=1):
            show(f"assembly {number}/{kernels}")
            yield pair

    with progress() as show:
        text = explorer_page(document, shown(model_texts(model)))
    click.echo(write_text(page, text))
    if trace is not None:
        click.echo(write_text(trace, json.dumps({"traceEvents": document["timeline"]})))
