"""`tilewright tune`: search for faster schedules of a model's kernels, and keep what was measured.

tilewright tune model.onnx --trials 512 --db records.db
tilewright tune model.onnx --budget 5m                      # the best that is found in that time
tilewright tune model.onnx --target cuda --precision fp16   # on the GPU of this machine
tilewright tune model.onnx --cluster 10.0.0.1:6379          # on all machines like this one
tilewright tune model.onnx --pretrain-from other.db         # a cost model that learnt from others
tilewright compile model.onnx --tuned records.db
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import (
    dims_option,
    json_option,
    model_argument,
    parse_dims,
    precision_option,
    target_option,
    threads_option,
)
from tilewright.cli.output import print_json, print_table, progress
from tilewright.core.errors import ConfigError

if TYPE_CHECKING:
    from tilewright.driver.tuning.end_to_end import Latency
    from tilewright.driver.tuning.session import OpenMeasurer, SearchSettings, TuningReport
    from tilewright.target.target import Target

COUNT = click.IntRange(min=1)
TRIALS = 512
# Gains that a comparison should show; where it does not, other work is in the way.
VISIBLE_GAIN = 0.02
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


def seconds(_: click.Context, __: click.Parameter, given: str | None) -> float | None:
    """`1h30m`, `5m`, `90s` or `90` in seconds."""
    if given is None:
        return None
    match = _DURATION.fullmatch(given)
    parts = [int(part or 0) for part in match.groups()] if match else [0]
    if not sum(parts):
        raise click.BadParameter(f"{given!r} is no time, for example 5m or 1h30m")
    return float(sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=True)))


@click.command("tune")
@model_argument
@click.option(
    "--trials",
    type=click.IntRange(min=0),
    help="Measurements in all, earlier ones of the same kernels included; "
    f"with --budget as many as fit. [default: {TRIALS}]",
)
@click.option("--budget", callback=seconds, metavar="TIME", help="For example 5m or 1h30m.")
@click.option(
    "--db",
    type=click.Path(path_type=Path),
    default=Path("records.db"),
    show_default=True,
    help="The file of records.",
)
@click.option("--strategy", default="evolutionary", show_default=True)
@click.option("--cost", help="The cost model. [default: lightgbm, or ridge where that is missing]")
@click.option(
    "--pretrain-from",
    "pretrain_from",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="RECORDS",
    help="A file of records of other models, on which the cost model is pre-trained. "
    "May be repeated.",
)
@click.option("--scheduler", default="gradient", show_default=True, help="Of tasks.")
@click.option("--space", default="constructed", show_default=True, help="Of schedules.")
@click.option("--batch", type=COUNT, default=16, show_default=True, help="Measured at once.")
@click.option("--cold-cache", is_flag=True, help="Evict the operands from caches before each run.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option(
    "--cluster",
    metavar="ADDRESS|local:N",
    help="Measure on the machines of a cluster of Ray; N workers on this machine to try it.",
)
@dims_option
@click.option(
    "--tune-dim",
    "sizes",
    multiple=True,
    metavar="NAME=SIZE",
    callback=parse_dims,
    help="Measure where a size that stays symbolic has this value; may be repeated.",
)
@target_option
@precision_option
@threads_option
@json_option
def tune_command(
    model: Path,
    trials: int | None,
    budget: float | None,
    db: Path,
    strategy: str,
    cost: str | None,
    pretrain_from: tuple[Path, ...],
    scheduler: str,
    space: str,
    batch: int,
    cold_cache: bool,
    seed: int,
    cluster: str | None,
    dims: Mapping[str, int],
    sizes: Mapping[str, int],
    target: str,
    precision: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Search for schedules of MODEL's kernels that are faster on this machine, or on its GPU.

    What is measured goes into the file of records at once, and a later call goes on from there.
    Ctrl-C ends the search, and what it has found is compared with the built-in schedules; a second
    one ends that too. Comparing takes half as long as the search, or 30 s, at most.

    `--tuned` of other commands uses the schedules
    that were compared with the built-in ones and are faster.
    """
    from tilewright.cli.commands.tune_progress import watching
    from tilewright.cli.source import read_source
    from tilewright.driver.tuning.end_to_end import TuningModel
    from tilewright.driver.tuning.session import SearchSettings, TuningSession, tasks_of
    from tilewright.tune.records import Records, TunedSizes

    if trials is None and budget is None:
        trials = TRIALS
    machine, count = _machine(target, precision, threads)
    whole = TuningModel(read_source(model), machine, dims, precision, sizes, count)
    with _pretrained(pretrain_from, cost, machine) as known_cost:
        method = _method(strategy, known_cost)
        settings = SearchSettings(trials, budget, batch, method, scheduler, space, seed, cold_cache)
        _check_names(settings)
        with progress() as say:
            say("finding the kernels of the model")
            tasks = tasks_of(whole, settings)
        # Only now: a model that cannot be tuned leaves no file behind.
        with Records(db) as records:
            known = {name: size for task in tasks.tasks for name, size in task.sizes.items()}
            records.add_session(TunedSizes(model.name, dims, {**known, **sizes}))
            with _measuring(cluster) as open_measurer, watching() as show:
                report = TuningSession(whole, records, settings, show, open_measurer, tasks).run()
            if as_json:
                print_json(_data(model, db, report))
            else:
                _print(model, db, report)


def _machine(name: str, precision: str, threads: int | None) -> tuple[Target, int]:
    """What is tuned for, and the threads of the processor that its models run on."""
    from tilewright.core.host.cuda_device import cuda_device
    from tilewright.driver.precision import check_precision, machine_for
    from tilewright.target.gpu import GpuTarget
    from tilewright.target.host import host
    from tilewright.target.registry import resolve_target

    machine = machine_for(resolve_target(name), check_precision(precision))
    if not isinstance(machine, GpuTarget):
        return machine, threads or host().cores
    if cuda_device() is None:
        raise ConfigError(
            "tune.no-gpu",
            f"schedules for {name} are measured on a GPU, and this machine has none",
            help="tune on a machine that has one; its records are good for compiling here",
        )
    if threads:
        raise ConfigError(
            "tune.threads",
            f"{threads} threads of the processor for a model that runs on a GPU",
            help="leave --threads out",
        )
    return machine, 0


@contextmanager
def _pretrained(
    records: tuple[Path, ...], cost: str | None, machine: Target
) -> Iterator[str | None]:
    """The cost model by name: one that is pre-trained on records, where some are given."""
    if not records:
        yield cost
        return
    if cost is not None:
        raise ConfigError(
            "tune.two-costs",
            "--pretrain-from makes a cost model of its own",
            help="leave --cost out",
        )
    from tilewright.tune.cost.pretrained import pretrain, write_model
    from tilewright.tune.cost.training_data import read_training_data

    tasks = [task for path in records for task in read_training_data(path, machine)]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.txt"
        write_model(file, pretrain(tasks))
        yield f"pretrained:{file}"


@contextmanager
def _measuring(cluster: str | None) -> Iterator[OpenMeasurer]:
    """The measurer: processes of this machine, or a cluster, whose lost workers are printed."""
    from tilewright.driver.tuning.session import BUILD_WORKER, measure_here

    if cluster is None:
        yield measure_here
        return
    from tilewright.tune.measure.cluster.measurer import ClusterMeasurer
    from tilewright.tune.measure.cluster.ray_cluster import connect

    lost: list[str] = []
    with connect(cluster) as connected:
        # The interpreter is that of the worker's machine.
        build = BUILD_WORKER[1:]
        yield lambda settings: ClusterMeasurer(connected, build, settings, lost.append)
    for text in dict.fromkeys(lost):
        click.echo(f"lost: {text}", err=True)


def _method(strategy: str, cost: str | None) -> Any:
    """The strategy with its cost model, if it uses one; both are checked."""
    from tilewright.tune.cost.table import make_cost_model
    from tilewright.tune.method import methods

    if cost is None:
        try:
            make_cost_model("lightgbm")
            cost = "lightgbm"
        except ConfigError:  # an extra that need not be installed
            cost = "ridge"
    (method,) = methods([strategy], [cost])
    return method


def _check_names(settings: SearchSettings) -> None:
    """Names that are not known are an error before anything is done."""
    from tilewright.tune.space.table import SCHEDULE_SPACES
    from tilewright.tune.task_scheduler.table import TASK_SCHEDULERS

    TASK_SCHEDULERS.get(settings.scheduler)
    SCHEDULE_SPACES.get(settings.space)


def _rows(report: TuningReport) -> list[dict[str, Any]]:
    from tilewright.driver.tuning.validate import winner

    rows = []
    for search in report.searches:
        about, found = search.task.about, winner(search)
        rows.append(
            {
                "kernel": about.name,
                "calls": int(about.weight),
                "schedule": about.kind,
                "trials": search.trials,
                "failed": search.failures,
                "builtin_us": search.builtin * 1e6,
                "best_us": search.best * 1e6,
                "gain": None if found is None else found[1],
                "problem": search.problem,
                "workload": search.task.workload,
            }
        )
    return rows


def _data(model: Path, db: Path, report: TuningReport) -> dict[str, Any]:
    latency = report.latency
    return {
        "model": str(model),
        "records": str(db),
        "kernels": _rows(report),
        "skipped": report.skipped,
        "trials": report.trials,
        "seconds": report.seconds,
        "interrupted": report.interrupted,
        "latency": None
        if latency is None
        else {
            "before_ms": latency.before * 1e3,
            "after_ms": latency.after * 1e3,
            "result": latency.result or "faster",
            "least_gain_shown": latency.least,
        },
    }


def _print(model: Path, db: Path, report: TuningReport) -> None:
    heads = ["kernel", "calls", "trials", "failed", "built-in µs", "best µs", "tuned"]
    keys = ["kernel", "calls", "trials", "failed", "builtin_us", "best_us"]
    rows = _rows(report)
    print_table(heads, [[*(row[key] for key in keys), _gain(row)] for row in rows])
    for name in report.skipped:
        click.echo(f"{name} was left out: it cannot be measured alone")
    how = ", interrupted" if report.interrupted else ""
    click.echo(f"{report.trials} measurements, {report.seconds:.0f} s{how}")
    click.echo(_latency(report))
    if any(row["gain"] for row in rows):
        click.echo(f"use them: tilewright compile {model} --tuned {db}")


def _gain(row: Mapping[str, Any]) -> str:
    if row["problem"]:
        return f"built-in: {row['problem']}"
    return "built-in" if row["gain"] is None else f"{row['gain']:.2f} times as fast"


def _doubt(latency: Latency) -> str:
    """What to do where other work disturbed the comparison."""
    from tilewright.tune.tuned_schedules import NO_DIFFERENCE

    if latency.result != NO_DIFFERENCE or (latency.least or 0.0) < VISIBLE_GAIN:
        return ""
    return (
        f"; times vary so much here that a gain of less than {latency.least:.0%} does not show: "
        "leave the machine to it, or give it a larger --budget"
    )


def _latency(report: TuningReport) -> str:
    from tilewright.tune.tuned_schedules import FASTER, NO_DIFFERENCE, SLOWER

    latency = report.latency
    if report.undecided:
        return (
            "interrupted before all was compared with the built-in schedules: what was measured is "
            "in the records, and the same command goes on from there"
        )
    if latency is None:
        return "no kernel has a schedule that is faster than the built-in one"
    if latency.result not in (FASTER, NO_DIFFERENCE, SLOWER):
        return f"the model could not be measured: {latency.result}"
    if latency.result != FASTER:
        return (
            f"the model is {latency.result} with them, {latency.after * 1e3:.3f} ms after "
            f"{latency.before * 1e3:.3f}: none of them will be used{_doubt(latency)}"
        )
    ratio = latency.before / latency.after
    return (
        f"the model: {latency.before * 1e3:.3f} ms before, {latency.after * 1e3:.3f} ms after, "
        f"{ratio:.2f} times as fast"
    )
