"""`tilewright list`: the names that other commands take, each with what it is."""

from __future__ import annotations

import click

from tilewright.cli.catalog import CATALOG
from tilewright.cli.options import json_option
from tilewright.cli.output import print_json, print_table


@click.command("list", help=f"List all of one KIND: {', '.join(CATALOG)}.")
@click.argument("kind", metavar="KIND", type=click.Choice(list(CATALOG)))
@json_option
def list_command(kind: str, as_json: bool) -> None:
    """List all of one kind."""
    rows = CATALOG[kind]()
    if as_json:
        print_json(rows)
        return
    columns = [name for name in rows[0] if name not in ("summary", "help")]
    print_table(
        [*columns, "summary"], [[row[c] for c in columns] + [row["summary"]] for row in rows]
    )
