"""Tune the twelve operators, with our tuner and with TVM's MetaSchedule, and compare the results.

    python benchmarks/kernels.py --group tuned --missing      # write the operators first
    python benchmarks/tuning.py --trials 64 --json tuning.json --resume
    python benchmarks/tuning.py gemm_512 --without-tvm

Both tuners start from nothing, have the same number of trials in batches of the same size, after
each of which their models learn, and are timed from start to end.
Then the built-in schedule, the tuned one, MetaSchedule's program and the engines that load fast
take turns in one run, measured by one stopwatch. For both there is a curve, the best time so far
over the seconds since the tuner was started, loading it included. Ours also says after how many
seconds it first had a schedule as fast as MetaSchedule's last one.

The figures are written after every operator, and `--resume` leaves out those that are in the file
and came through. A tuner that fails is told of, and costs that operator only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from engine_rows import geometric_mean
from kernels import CACHE, TUNED
from latency import OWN_ENVIRONMENTS, add_arguments, entry, known_rows, settings_of, write
from machine import describe_machine

from tilewright.bench.interleaved import measure
from tilewright.tune.records import Records

OURS, OURS_TUNED, THEIRS = "tilewright", "tilewright tuned", "tvm-tuned"
PEERS = ("onnxruntime", "openvino")


def tune_ours(folder: Path, trials: int, batch: int, threads: int, seed: int) -> dict[str, Any]:
    """Tune from an empty file of records: the seconds it took, and the curve."""
    records = folder / "records.db"
    for old in folder.glob("records.db*"):
        old.unlink()
    command = [sys.executable, "-m", "tilewright", "tune", folder / "model.onnx", "--db", records]
    options = ["--trials", trials, "--batch", batch, "--threads", threads, "--seed", seed, "--json"]
    start = time.time()
    spent, _ = _timed([*command, *options])
    return {"seconds": spent, "curve": our_curve(records, start)}


def tune_theirs(folder: Path, trials: int, batch: int, threads: int, seed: int) -> dict[str, Any]:
    """Tune with MetaSchedule: the seconds it took, and the curve."""
    script = Path(__file__).with_name("metaschedule.py")
    options = ["--trials", trials, "--batch", batch, "--threads", threads, "--seed", seed]
    spent, printed = _timed([OWN_ENVIRONMENTS[THEIRS], script, folder, *options])
    told = json.loads(printed.splitlines()[-1])
    loading = spent - told["seconds"]
    return {
        "seconds": spent,
        "failed": told["failed"],
        "curve": [[when + loading, best] for when, best in told["curve"]],
    }


def _timed(command: Sequence[object]) -> tuple[float, str]:
    """The seconds that a command took, and what it printed."""
    start = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return time.perf_counter() - start, done.stdout


def our_curve(records: Path, start: float) -> list[list[float]]:
    """Seconds since the start and the best milliseconds so far, wherever there was a better one.

    All kernels of an operator count, so there is none before each has been measured once. What is
    compared at the end is no trial.
    """
    with Records(records) as file:
        rows = [row for row in file if row.times and not row.baseline and not row.failure]
    kernels = {row.workload for row in rows}
    best: dict[str, float] = {}
    curve: list[list[float]] = []
    for row in sorted(rows, key=lambda row: row.measured_at):
        best[row.workload] = min(median(row.times) * 1e3, best.get(row.workload, inf))
        total = sum(best.values())
        if best.keys() == kernels and (not curve or total < curve[-1][1]):
            curve.append([row.measured_at - start, total])
    return curve


def level_after(ours: Mapping[str, Any], our_ms: float, their_ms: float) -> float | None:
    """Seconds until our tuner had a schedule as fast as their last one; None if it never had.

    Records have the time of the kernel alone: what a call takes beside it is what the stopwatch
    says of our last one more than the records do.
    """
    beside = max(0.0, our_ms - ours["curve"][-1][1]) if ours["curve"] else 0.0
    return next((when for when, best in ours["curve"] if best + beside <= their_ms), None)


def measured(
    folder: Path, engines: Sequence[str], arguments: argparse.Namespace, records: Path
) -> dict[str, Any]:
    """All engines in turns: a row each, by label."""
    entries = []
    for engine in engines:
        ours = engine == OURS_TUNED
        python = str(OWN_ENVIRONMENTS.get(engine, sys.executable))
        one = entry(
            OURS if ours else engine, folder, folder, arguments.threads, python, label=engine
        )
        entries.append(replace(one, tuned=str(records)) if ours else one)
    rows = [result.summary() for result in measure(entries, settings_of(arguments))]
    return {row["engine"]: row for row in rows}


def compare(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One operator: how long tuning took with which curve, and the rows of all engines."""
    folder = arguments.cache.resolve() / "tuned" / name
    how = (arguments.trials, arguments.batch, arguments.threads, arguments.seed)
    tuners = {OURS_TUNED: tune_ours}
    if not arguments.without_tvm:
        tuners[THEIRS] = tune_theirs
    asked = {"trials": arguments.trials, "batch": arguments.batch}
    result: dict[str, Any] = {"model": name, **asked, "tuning": {}}
    for label, tune in tuners.items():
        try:
            result["tuning"][label] = tune(folder, *how)
        except RuntimeError as error:
            result.setdefault("failed", {})[label] = str(error)
    engines = [OURS, *result["tuning"], *PEERS]
    rows = measured(folder, engines, arguments, folder / "records.db")
    result["rows"] = list(rows.values())
    times = {engine: row["min_ms"] for engine, row in rows.items() if "min_ms" in row}
    if {OURS_TUNED, THEIRS} <= times.keys():
        ours = result["tuning"][OURS_TUNED]
        result["level_after_s"] = level_after(ours, times[OURS_TUNED], times[THEIRS])
    return result


def line(result: Mapping[str, Any]) -> str:
    """One operator as text, with both curves below."""
    cells = [f"{row['engine']} {row['min_ms']:.3f}" for row in result["rows"] if "min_ms" in row]
    lines = [f"{result['model']}: {', '.join(cells)} ms"]
    for label, told in result["tuning"].items():
        points = ", ".join(f"{when:.0f} s {best:.3f} ms" for when, best in told["curve"])
        lines.append(f"  {label}, {told['seconds']:.0f} s: {points}")
    if "level_after_s" in result:
        when, theirs = result["level_after_s"], result["tuning"][THEIRS]["seconds"]
        text = "never" if when is None else f"after {when:.0f} s, {when / theirs:.3f} of its time"
        lines.append(f"  as fast as MetaSchedule's last: {text}")
    lines += [f"  {label} failed: {why}" for label, why in result.get("failed", {}).items()]
    return "\n".join(lines)


def gain(results: Sequence[Mapping[str, Any]], over: str) -> float:
    """How much faster the tuned schedules are than `over`, as a geometric mean of minima."""
    ratios = []
    for result in results:
        times = {row["engine"]: row.get("min_ms") for row in result["rows"]}
        if times.get(over) and times.get(OURS_TUNED):
            ratios.append(times[over] / times[OURS_TUNED])
    return geometric_mean(ratios) if ratios else float("nan")


def main() -> None:
    """Tune and measure, print a line an operator, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(TUNED)} (default: all)")
    add_arguments(parser)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16, help="trials between two fits, of both")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-tvm", action="store_true", help="only our own tuner")
    parser.set_defaults(cache=CACHE)
    arguments = parser.parse_args()
    machine = describe_machine((1, arguments.threads))
    results = [row for row in known_rows(arguments) if "failed" not in row]
    for result in results:
        print(line(result))
    known = {result["model"] for result in results}
    for name in (n for n in arguments.names or TUNED if n not in known):
        results.append(compare(name, arguments))
        print(line(results[-1]), flush=True)
        if arguments.json:
            write(arguments.json, machine, results)
    print(f"tuned against built-in: {gain(results, OURS):.2f} (geometric mean)")
    if not arguments.without_tvm:
        print(f"tuned against MetaSchedule: {gain(results, THEIRS):.2f}")


if __name__ == "__main__":
    main()
