"""Tune the twelve operators, with our tuner and with TVM's MetaSchedule, and compare the results.

    python benchmarks/kernels.py --group tuned --missing      # write the operators first
    python benchmarks/tuning.py --trials 64 --json tuning.json
    python benchmarks/tuning.py gemm_512 --without-tvm

Both tuners start from nothing, have the same number of trials, and are timed from start to end.
Then the built-in schedule, the tuned one, MetaSchedule's program and the engines that load fast
take turns in one run, measured by one stopwatch. Ours also says after how many seconds it first had
a schedule as fast as MetaSchedule's last one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernels import CACHE, TUNED
from latency import OWN_ENVIRONMENTS, add_arguments, entry, settings_of, write
from machine import describe_machine
from report import geometric_mean

from tilewright.bench.rounds import measure
from tilewright.tune.records import Records

OURS, OURS_TUNED, THEIRS = "tilewright", "tilewright tuned", "tvm-tuned"
PEERS = ("onnxruntime", "openvino")


def tune_ours(folder: Path, trials: int, threads: int, seed: int) -> float:
    """Tune from an empty file of records; the seconds it took."""
    records = folder / "records.db"
    for old in folder.glob("records.db*"):
        old.unlink()
    command = [sys.executable, "-m", "tilewright", "tune", folder / "model.onnx", "--db", records]
    options = ["--trials", trials, "--threads", threads, "--seed", seed, "--json"]
    return _timed([*command, *options])


def tune_theirs(folder: Path, trials: int, threads: int, seed: int) -> float:
    """Tune with MetaSchedule; the seconds it took."""
    script = Path(__file__).with_name("metaschedule.py")
    options = ["--trials", trials, "--threads", threads, "--seed", seed]
    return _timed([OWN_ENVIRONMENTS[THEIRS], script, folder, *options])


def _timed(command: Sequence[object]) -> float:
    start = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return time.perf_counter() - start


def seconds_until(records: Path, enough: float) -> float | None:
    """Seconds from the first measurement until one was as fast as `enough`; None if none was."""
    with Records(records) as file:
        rows = [row for row in file if row.times]
    fast = [row.measured_at for row in rows if min(row.times) <= enough]
    return min(fast) - min(row.measured_at for row in rows) if fast else None


def measured(folder: Path, engines: Sequence[str], arguments: argparse.Namespace) -> dict[str, Any]:
    """All engines in turns: a row each, by label."""
    entries = []
    for engine in engines:
        ours = engine == OURS_TUNED
        python = str(OWN_ENVIRONMENTS.get(engine, sys.executable))
        one = entry(
            OURS if ours else engine, folder, folder, arguments.threads, python, label=engine
        )
        entries.append(replace(one, tuned=str(folder / "records.db")) if ours else one)
    rows = [result.summary() for result in measure(entries, settings_of(arguments))]
    return {row["engine"]: row for row in rows}


def compare(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One operator: how long tuning took, and the rows of all engines."""
    folder = arguments.cache.resolve() / "tuned" / name
    how = (arguments.trials, arguments.threads, arguments.seed)
    seconds = {OURS_TUNED: tune_ours(folder, *how)}
    engines = [OURS, OURS_TUNED, *PEERS]
    if not arguments.without_tvm:
        seconds[THEIRS] = tune_theirs(folder, *how)
        engines.append(THEIRS)
    rows = measured(folder, engines, arguments)
    result: dict[str, Any] = {"model": name, "tuning_s": seconds, "rows": list(rows.values())}
    if THEIRS in rows and "min_ms" in rows[THEIRS]:
        enough = rows[THEIRS]["min_ms"] / 1e3
        result["level_after_s"] = seconds_until(folder / "records.db", enough)
    return result


def line(result: Mapping[str, Any]) -> str:
    """One operator as text."""
    cells = [f"{row['engine']} {row['min_ms']:.3f}" for row in result["rows"] if "min_ms" in row]
    spent = ", ".join(f"{name} {s:.0f} s" for name, s in result["tuning_s"].items())
    return f"{result['model']}: {', '.join(cells)} ms; {spent}; {result.get('level_after_s')}"


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
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-tvm", action="store_true", help="only our own tuner")
    parser.set_defaults(cache=CACHE)
    arguments = parser.parse_args()
    machine = describe_machine((1, arguments.threads))
    results = []
    for name in arguments.names or TUNED:
        results.append(compare(name, arguments))
        print(line(results[-1]), flush=True)
        if arguments.json:
            write(arguments.json, machine, results)
    print(f"tuned against built-in: {gain(results, OURS):.2f} (geometric mean)")
    if not arguments.without_tvm:
        print(f"tuned against MetaSchedule: {gain(results, THEIRS):.2f}")


if __name__ == "__main__":
    main()
