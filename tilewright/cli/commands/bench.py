"""`tilewright bench`: the latency of a model, beside other engines on the same inputs.

Each engine runs in a process of its own with the same number of threads. They load one after the
other and are then measured in interleaved rounds, in a new order each round, so that what else
happens on the machine affects all of them alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import (
    dims_option,
    disable_pass_option,
    inputs_option,
    json_option,
    model_argument,
    seed_option,
    threads_option,
    tuned_option,
)
from tilewright.cli.output import print_json, print_table, progress

if TYPE_CHECKING:
    from tilewright.bench.interleaved import EngineResult, Entry

OURS = "tilewright"
ALL = "all"


@click.command("bench")
@model_argument
@click.option(
    "--against",
    default="",
    metavar="ENGINES",
    help="Comma-separated, see `tilewright list engines`; `all`: those installed.",
)
@inputs_option
@threads_option
@click.option("--rounds", type=click.IntRange(min=1), default=7, show_default=True)
@click.option(
    "--seconds", type=float, default=0.2, show_default=True, help="Of one engine in a round."
)
@click.option(
    "--idle-timeout",
    type=float,
    default=10,
    show_default=True,
    help="Seconds to wait for an idle machine, in all.",
)
@seed_option
@dims_option
@tuned_option
@disable_pass_option
@json_option
def bench_command(
    model: Path,
    against: str,
    given: Sequence[str],
    threads: int | None,
    rounds: int,
    seconds: float,
    idle_timeout: float,
    seed: int,
    dims: Mapping[str, int],
    tuned: Path | None,
    disable_passes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure the latency of MODEL; inputs that are not given are drawn at random."""
    from tempfile import TemporaryDirectory

    from tilewright.bench.interleaved import HarnessSettings, measure
    from tilewright.cli.input_files import parse_assignments
    from tilewright.target.host import host

    names = engine_names(against)
    check_engines(names, model)
    check_passes(disable_passes, model)
    files, count = parse_assignments(given), threads or host().cores
    sizes: Mapping[str, int] = {}
    if tuned is not None and not dims:
        dims, sizes = tuned_sizes(tuned, model)
    with TemporaryDirectory() as folder:
        entries = _entries(names, model, files, count, dims, sizes, seed, Path(folder))
        entries = [_without(entry, disable_passes) for entry in entries]
        if tuned is not None:
            entries.insert(1, tuned_entry(entries[0], tuned))
        with progress() as show:
            results = measure(entries, HarnessSettings(rounds, seconds, idle_timeout), show)
        rows = summarize(entries, results)
    if as_json:
        used = {**sizes, **dims}
        print_json({"model": str(model), "threads": count, "dims": used, "engines": rows})
    else:
        tuned_at = "".join(f", {name} = {size} as tuned" for name, size in sizes.items())
        click.echo(f"{model.name}, {count} threads, {rounds} rounds{tuned_at}")
        _print(rows)


def engine_names(against: str) -> list[str]:
    """Ours first, then those asked for; `all` stands for the usual ones that are installed."""
    from tilewright.bench.engines import ENGINES

    names = [OURS]
    for name in filter(None, (part.strip() for part in against.split(","))):
        usual = [n for n, one in ENGINES.items() if one.installed and not one.on_request]
        names += usual if name == ALL else [name]
    return list(dict.fromkeys(names))


def check_engines(names: Sequence[str], model: Path) -> None:
    """Refuse engines that are not known or not installed, before anything is started."""
    from tilewright.bench.engines import ENGINES, REFUSED
    from tilewright.cli.source import is_saved
    from tilewright.core.errors import ConfigError

    for name in names:
        if name in REFUSED:
            raise ConfigError(
                "bench.refused",
                f"no comparison with {name}: {REFUSED[name]}",
                help="benchmarks/latency.py compares with it on models it has the modules of",
            )
        if name not in ENGINES:
            raise ConfigError(
                "bench.engine", f"no engine named {name!r}", help=f"one of {', '.join(ENGINES)}"
            )
        package = ENGINES[name].package
        if not ENGINES[name].installed:
            raise ConfigError(
                "bench.missing", f"{package} is not installed", help=f"pip install {package}"
            )
    if len(names) > 1 and is_saved(model):
        raise ConfigError(
            "bench.saved",
            f"{model} is compiled: only {OURS} can run it",
            help="give the .onnx file",
        )


def _entries(
    names: Sequence[str],
    model: Path,
    files: Mapping[str, Path],
    threads: int,
    dims: Mapping[str, int],
    sizes: Mapping[str, int],
    seed: int,
    folder: Path,
) -> list[Entry]:
    """One entry an engine, all with the same inputs, kept in `folder`.

    The model is compiled for `dims`; other dimensions of the inputs have the given `sizes`.
    """
    from tilewright.bench.engines import ENGINES
    from tilewright.bench.interleaved import Entry
    from tilewright.bench.npz import write_npz
    from tilewright.cli.input_files import given_inputs
    from tilewright.cli.source import model_ports

    inputs, outputs = model_ports(model, dims)
    write_npz(folder / "inputs.npz", given_inputs(inputs, files, {**sizes, **dims}, seed))
    return [
        Entry(
            label=name,
            engine=name,
            model=str(model.resolve()),
            inputs=str(folder / "inputs.npz"),
            threads=threads,
            outputs=str(folder / f"{name}.npz"),
            output_names=tuple(port.name for port in outputs),
            dims=dims,
            keeps=ENGINES[name].keeps and model.suffix != ".tw",
        )
        for name in names
    ]


def check_passes(names: Sequence[str], model: Path) -> None:
    """Refuse passes that cannot be disabled, before anything is started."""
    from tilewright.cli.source import is_saved
    from tilewright.core.errors import ConfigError
    from tilewright.driver.options import make_options
    from tilewright.driver.pipeline import passes_for

    if names and is_saved(model):
        raise ConfigError("pass.saved", f"{model} is compiled", help="give the .onnx file")
    options = make_options(disable_passes=names)
    passes_for(options.target, options.disable_passes)


def _without(entry: Entry, passes: tuple[str, ...]) -> Entry:
    """An entry of our engine without some graph passes; others stay as they are."""
    from tilewright.bench.engines import ENGINES

    ours = ENGINES[entry.engine].package == OURS
    return replace(entry, disable_passes=passes) if ours else entry


def tuned_entry(ours: Entry, records: Path) -> Entry:
    """Our engine a second time, with the schedules of a file of records."""
    from tilewright.core.errors import ConfigError
    from tilewright.tune.records import Records

    if ours.model.endswith(".tw"):
        raise ConfigError("tuned.saved", f"{ours.model} is compiled", help="give the .onnx file")
    Records(records, read_only=True).close()  # a bad file is an error before anything is started
    label, outputs = f"{OURS} tuned", f"{ours.outputs}.tuned.npz"
    return replace(ours, label=label, outputs=outputs, tuned=str(records.resolve()))


def tuned_sizes(records: Path, model: Path) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """The sizes that a model was last tuned for: those compiled for, and those measured at."""
    from tilewright.tune.records import Records

    with Records(records, read_only=True) as opened:
        found = opened.last_session(model.name)
    return ({}, {}) if found is None else (found.dims, found.sizes)


def summarize(entries: Sequence[Entry], results: Sequence[EngineResult]) -> list[dict[str, Any]]:
    """One row an engine: its figures, how much longer than ours it takes, how far it lies apart.

    The difference is to the first other engine that answered. Where ours fails, that is raised.
    """
    from tilewright.core.errors import ExecutionError

    rows = [result.summary() for result in results]
    if "failure" in rows[0]:
        raise ExecutionError("bench.failed", f"{OURS} failed: {rows[0]['failure']}")
    answered = [i for i, row in enumerate(rows) if "failure" not in row]
    base = answered[1] if len(answered) > 1 else answered[0]
    for i in answered:
        rows[i].pop("kernels", None)
        rows[i]["ratio"] = rows[i]["min_ms"] / rows[0]["min_ms"]
        rows[i]["difference"] = _difference(entries[i], entries[base])
    return rows


def _difference(one: Entry, other: Entry) -> float:
    import numpy as np

    from tilewright.core.numeric_error import relative_error

    assert one.outputs is not None
    assert other.outputs is not None
    return relative_error(dict(np.load(one.outputs)), dict(np.load(other.outputs)))


_COLUMNS = {
    "engine": "engine",
    "min_ms": "min ms",
    "median_ms": "median ms",
    "ratio": "/ ours",
    "compile_s": "compile s",
    "load_s": "load s",
    "load_peak_mb": "loading MB",
    "run_mb": "running MB",
    "difference": "difference",
}


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    good = [row for row in rows if "failure" not in row]
    print_table(list(_COLUMNS.values()), [[row[key] for key in _COLUMNS] for row in good])
    for row in rows:
        if "failure" in row:
            click.echo(f"{row['engine']} failed: {row['failure']}")
    others = [row for row in good if not row["engine"].startswith(OURS)]
    if others:
        best = min(others, key=lambda row: row["min_ms"])
        click.echo(f"the best other, {best['engine']}, takes {best['ratio']:.2f} times as long")
