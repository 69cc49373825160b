"""What commands print: tables and progress for people, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

# A table that goes into a file must not be cut to the width of some terminal.
_FILE_WIDTH = 200


def print_json(data: Any) -> None:
    """Print JSON; what JSON cannot say (NaN, infinity) becomes null."""
    click.echo(json.dumps(_plain(data), indent=1, allow_nan=False))


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data if data is None or isinstance(data, bool | int | float | str) else str(data)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their headings; columns of numbers are set to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, heading in enumerate(columns):
        numeric = all(isinstance(row[number], int | float) for row in rows)
        table.add_column(heading, justify="right" if numeric and rows else "left")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console = Console(highlight=False)
    console.print(table) if console.is_terminal else _print_plain(table)


def _print_plain(table: Any) -> None:
    """Without colours, cut-off cells or spaces at the ends of lines."""
    from rich.console import Console

    console = Console(width=_FILE_WIDTH, color_system=None, force_terminal=False)
    with console.capture() as text:
        console.print(table)
    for line in text.get().strip("\n").splitlines():
        click.echo(line.rstrip())


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that shows what is being done, on a terminal; elsewhere it shows nothing."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda stage: None
        return
    with console.status("starting") as status:
        yield lambda stage: status.update(stage)


def size_text(count: float) -> str:
    """Bytes for people: `3.2 MB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
