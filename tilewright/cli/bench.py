"""`tilewright bench`: the latency of a model, beside other engines on the same inputs.

Engines load one after the other and then take turns in rounds, in a new order each round, so that
what else happens on the machine meets all of them alike.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import dims_option, json_option, model_argument, threads_option
from tilewright.cli.output import print_json, print_table, progress

if TYPE_CHECKING:
    from tilewright.cli.bench_engine import Loaded, Task

OURS = "tilewright"


@click.command("bench")
@model_argument
@click.option(
    "--against", default="", metavar="ENGINES", help="Comma-separated: onnxruntime, openvino."
)
@threads_option
@click.option("--rounds", type=click.IntRange(min=1), default=7, show_default=True)
@click.option("--seconds", type=float, default=0.2, show_default=True, help="One engine's turn.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random inputs.")
@dims_option
@json_option
def bench_command(
    model: Path,
    against: str,
    threads: int | None,
    rounds: int,
    seconds: float,
    seed: int,
    dims: Mapping[str, int],
    as_json: bool,
) -> None:
    """Measure the latency of MODEL on random inputs."""
    from tilewright.cli.bench_engine import Task
    from tilewright.target.cpu import host

    others = [name.strip() for name in against.split(",") if name.strip()]
    names = list(dict.fromkeys((OURS, *others)))
    check_engines(names, model)
    count = threads or host().cores
    task = Task(model, _random_inputs(model, dims, seed), count, dims)
    rows = summarize(measure(task, names, rounds, seconds))
    if as_json:
        print_json({"model": str(model), "threads": count, "dims": dict(dims), "engines": rows})
        return
    click.echo(f"{model.name}, {count} threads, {rounds} rounds")
    _print(rows)


def check_engines(names: Sequence[str], model: Path) -> None:
    """Refuse engines that are not known or not installed, before anything is started."""
    from importlib.util import find_spec

    from tilewright.cli.bench_engine import ENGINES, REFUSED
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
        if find_spec(name) is None:
            raise ConfigError(
                "bench.missing", f"{name} is not installed", help=f"pip install {name}"
            )
    if len(names) > 1 and is_saved(model):
        raise ConfigError(
            "bench.saved",
            f"{model} is compiled: only {OURS} can run it",
            help="give the .onnx file",
        )


def _random_inputs(model: Path, dims: Mapping[str, int], seed: int) -> dict[str, Any]:
    from tilewright.cli.arrays import random_inputs
    from tilewright.cli.source import open_model

    with open_model(model, dims=dims) as executable:
        return random_inputs(executable.inputs, dims, seed)


@dataclass
class Result:
    """What was measured of one engine."""

    engine: str
    loaded: Loaded
    milliseconds: list[float] = field(default_factory=list)


class Worker:
    """An engine in its own process."""

    def __init__(self, engine: str, task: Task) -> None:
        import multiprocessing

        from tilewright.cli.bench_engine import serve

        context = multiprocessing.get_context("spawn")
        self.engine = engine
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(engine, task, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def receive(self) -> Any:
        """The next answer; an error of the engine is raised here."""
        from tilewright.core.errors import Error, ExecutionError

        try:
            answer = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise ExecutionError(
                "bench.died", f"the process of {self.engine} ended with {self.process.exitcode}"
            ) from None
        if isinstance(answer, Error):
            raise answer
        return answer

    def turn(self, seconds: float) -> list[float]:
        """Let it run for some seconds; the milliseconds of each run."""
        self.pipe.send(seconds)
        return list(self.receive())

    def close(self) -> None:
        """End the process."""
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def measure(task: Task, names: Sequence[str], rounds: int, seconds: float) -> list[Result]:
    """Load every engine, then let them take turns."""
    workers: list[Worker] = []
    results: list[Result] = []
    try:
        with progress() as show:
            for name in names:
                show(f"load {name}")
                workers.append(Worker(name, task))
                results.append(Result(name, workers[-1].receive()))
            for number in range(rounds):
                show(f"round {number + 1} of {rounds}")
                for index in random.sample(range(len(names)), len(names)):
                    results[index].milliseconds += workers[index].turn(seconds)
    finally:
        for worker in workers:
            worker.close()
    return results


def summarize(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One row an engine; ratios are to the first other engine, below one being faster."""
    base = results[1] if len(results) > 1 else results[0]
    fastest, middle = min(base.milliseconds), statistics.median(base.milliseconds)
    rows = []
    for result in results:
        times = result.milliseconds
        rows.append(
            {
                "engine": result.engine,
                "min_ms": min(times),
                "median_ms": statistics.median(times),
                "runs": len(times),
                "load_s": result.loaded.seconds,
                "baseline": base.engine,
                "min_ratio": min(times) / fastest,
                "median_ratio": statistics.median(times) / middle,
                "difference": difference(result.loaded.outputs, base.loaded.outputs),
            }
        )
    return rows


def difference(got: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """The largest difference of any output, relative to that output's largest magnitude."""
    import numpy as np

    worst = 0.0
    for name, values in wanted.items():
        a, b = np.asarray(got[name], np.float64), np.asarray(values, np.float64)
        if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return float("inf")
        finite = np.isfinite(b)
        if finite.any():
            scale = max(float(np.abs(b[finite]).max()), 1e-30)
            worst = max(worst, float(np.abs(a[finite] - b[finite]).max()) / scale)
    return worst


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    base = rows[0]["baseline"]
    alone = len(rows) == 1
    heads = ["engine", "min ms", "median ms", "runs"]
    keys = ["engine", "min_ms", "median_ms", "runs"]
    if not alone:
        heads += [f"min / {base}", f"median / {base}", "difference"]
        keys += ["min_ratio", "median_ratio", "difference"]
    print_table(heads, [[row[key] for key in keys] for row in rows])
