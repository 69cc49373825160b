"""`tilewright records`: look into files of records, put them together, pass them on.

tilewright records show records.db
tilewright records merge records.db theirs.db
tilewright records export records.db -o records.jsonl
tilewright records import records.db records.jsonl
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import json_option
from tilewright.cli.output import print_json, print_table

if TYPE_CHECKING:
    from tilewright.tune.records import Record

FILE = click.Path(path_type=Path)
# Stands where the blocks of a kernel do.
MODEL = "the whole model"
_BLOCK = re.compile(r'block "([^"]+)"')


@click.group("records")
def records_command() -> None:
    """Show, merge, export and import files of records."""


@records_command.command("show")
@click.argument("db", type=FILE)
@json_option
def show_command(db: Path, as_json: bool) -> None:
    """Say what DB holds, one row a kernel, or a model that has won, and machine."""
    from tilewright.tune.records import Records

    with Records(db, read_only=True) as records:
        texts = records.workloads()
        tasks: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            tasks.setdefault((record.workload, record.target), []).append(record)
    rows = [_row(*task, found, texts) for task, found in tasks.items()]
    kernels = sum(row["blocks"] != MODEL for row in rows)
    if as_json:
        print_json(rows)
        return
    keys = ["workload", "blocks", "cpu", "records", "failed", "best_us", "gain"]
    heads = ["workload", "blocks", "cpu", "records", "failed", "best µs", "tuned"]
    print_table(heads, [["" if row[key] is None else row[key] for key in keys] for row in rows])
    click.echo(f"{sum(row['records'] for row in rows)} records of {kernels} kernels")


def _row(
    workload: str, target: str, records: list[Record], texts: dict[str, str]
) -> dict[str, Any]:
    from statistics import median

    from tilewright.tune.tuned_schedules import TunedSchedules
    from tilewright.tune.workload import WHOLE_MODEL

    measured = [r for r in records if not r.baseline]
    times = [median(r.times) for r in measured if r.times and not r.failure]
    schedules = TunedSchedules(r for r in records if r.baseline).of(workload)
    return {
        "workload": workload,
        "blocks": MODEL if workload.startswith(WHOLE_MODEL) else _blocks(texts.get(workload, "")),
        "cpu": _cpu(target),
        "records": len(records),
        "failed": sum(bool(r.failure) for r in measured),
        "best_us": min(times) * 1e6 if times else None,
        "gain": schedules[0].gain if schedules else None,
    }


def _blocks(text: str) -> str:
    return " ".join(dict.fromkeys(_BLOCK.findall(text)))


def _cpu(target: str) -> str:
    try:
        return str(json.loads(target)["cpu"])
    except (ValueError, KeyError, TypeError):
        return target


@records_command.command("merge")
@click.argument("db", type=FILE)
@click.argument("others", type=FILE, nargs=-1, required=True)
def merge_command(db: Path, others: tuple[Path, ...]) -> None:
    """Take over into DB what the OTHERS have; it is made if there is none."""
    from contextlib import ExitStack

    from tilewright.tune.records import Records

    with ExitStack() as stack:  # all of them are opened before anything is written
        read = [stack.enter_context(Records(path, read_only=True)) for path in others]
        records = stack.enter_context(Records(db))
        click.echo(f"{sum(records.merge(other) for other in read)} new records in {db}")


@records_command.command("export")
@click.argument("db", type=FILE)
@click.option("-o", "--output", type=FILE, help="A file. [default: standard output]")
def export_command(db: Path, output: Path | None) -> None:
    """Write what DB holds as lines of JSON."""
    from tilewright.core.atomic_write import atomic_write
    from tilewright.tune.records import Records

    with Records(db, read_only=True) as records:
        if output is None:
            records.export_lines(lambda text: click.echo(text, nl=False))
            return
        atomic_write(output, lambda file: records.export_lines(file.write_text))
        click.echo(f"{len(records)} records in {output}")


@records_command.command("import")
@click.argument("db", type=FILE)
@click.argument("lines", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
def import_command(db: Path, lines: Path) -> None:
    """Add records from FILE, lines of JSON, to DB; `-` is standard input."""
    from tilewright.tune.records import Records

    is_input = str(lines) == "-"
    text = sys.stdin.read() if is_input else lines.read_text(errors="replace")
    with Records(db) as records:
        new = records.import_lines(text.split("\n"), "standard input" if is_input else str(lines))
        click.echo(f"{new} new records in {db}")
