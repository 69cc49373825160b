"""`tilewright fuzz`: look for mistakes of the compiler.

tilewright fuzz --seconds 60                 # random graphs against the interpreter
tilewright fuzz --ops Gather,Conv --seed 7   # of these operators
tilewright fuzz --mutate --seconds 60        # mutated model files
tilewright fuzz --mutate --exhaustive --start 900   # every single mutation, from the 900th on
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import json_option
from tilewright.cli.output import print_json, progress

if TYPE_CHECKING:
    from tilewright.fuzz.campaign import FuzzReport


@click.command("fuzz")
@click.option("--mutate", is_flag=True, help="Mutated model files instead of random graphs.")
@click.option("--exhaustive", is_flag=True, help="With --mutate: every single mutation, in order.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option("--graphs", type=click.IntRange(min=1), help="How many to try.")
@click.option(
    "--start", "first", type=click.IntRange(min=0), default=0, help="The number of the first."
)
@click.option(
    "--seconds", type=float, help="How long to try. [default: 60 unless --graphs or --exhaustive]"
)
@click.option("--ops", default="", metavar="A,B", help="Only test cases of these ONNX operators.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="At once.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write findings there, as small as they get."
)
@json_option
def fuzz_command(
    mutate: bool,
    exhaustive: bool,
    seed: int,
    graphs: int | None,
    first: int,
    seconds: float | None,
    ops: str,
    jobs: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Try random graphs, or mutated models; what goes wrong is shrunk. Fails if anything did."""
    from tilewright.fuzz.campaign import FuzzSettings, run_campaign
    from tilewright.fuzz.mutation_campaign import run_exhaustive, run_mutations

    if exhaustive and not mutate:
        raise click.UsageError("--exhaustive needs --mutate")
    operators = frozenset(filter(None, (name.strip() for name in ops.split(","))))
    limit = 60.0 if seconds is None and graphs is None and not exhaustive else seconds
    settings = FuzzSettings(seed, graphs, limit, operators, jobs, out, first=first)
    run_mutated = run_exhaustive if exhaustive else run_mutations
    with progress() as show:
        report = (run_mutated if mutate else run_campaign)(settings, show)
    _print(report, as_json)
    if not mutate and not as_json:
        _print_shares(report)
    if report.findings:
        sys.exit(1)


def _print(report: FuzzReport, as_json: bool) -> None:
    if as_json:
        print_json(report.as_json())
        return
    for found in report.findings:
        click.echo(_text(found))
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.kinds.items()))
    click.echo(f"{report.tried} tried in {report.seconds:.0f} s: {kinds}")
    click.echo(f"{len(report.operators)} operators, {len(report.findings)} findings")


def _print_shares(report: FuzzReport) -> None:
    """How many graphs were compared, and with what."""
    share = report.reference / max(1, report.compared)
    click.echo(
        f"{report.compared} compared with the interpreter, of these {report.reference} "
        f"({share:.0%}, {len(report.met)} operators) with ONNX's reference"
    )


def _text(found: dict[str, Any]) -> str:
    what = f"{found['kind']} ({found['graph']}): {', '.join(found['operators'])}"
    where = f"\n  {found['file']}" if "file" in found else ""
    detail = found["detail"].strip().splitlines() or [""]
    return f"{what}{where}\n  {detail[0] if found['kind'] != 'internal' else detail[-1]}"
