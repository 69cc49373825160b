"""Compare the latency of two commits of Tilewright on the models of the zoo, in one run.

    python benchmarks/revisions.py BEFORE AFTER                       # all models
    python benchmarks/revisions.py v1.0 HEAD resnet50 bert_base --json build/revisions.json

Each commit is checked out into a temporary folder. Both run in the same interleaved rounds (see
`tilewright/bench/interleaved.py`), each in processes of its own, so that drift of the machine meets
both. The ratio is the time before divided by the time after: above 1 the later commit is faster.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine_rows import geometric_mean
from latency import HERE, ROOT, choose, entry, known_rows, table, write
from machine import describe_machine

from tilewright.bench.interleaved import Entry, HarnessSettings, measure

# A worker with the package of another folder in place of this one.
START = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from tilewright.bench.engines import ENGINES
from tilewright.bench.worker import main
main(ENGINES)
"""


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The files of a commit in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        archive = ["git", "archive", "--format=tar", commit, "tilewright"]
        with subprocess.Popen(archive, cwd=ROOT, stdout=subprocess.PIPE) as files:
            subprocess.run(["tar", "-x", "-C", folder], stdin=files.stdout, check=True)
        if files.returncode:
            raise SystemExit(f"no commit {commit} in {ROOT}")
        yield Path(folder)


def entry_of(label: str, tree: Path, folder: Path, threads: int) -> Entry:
    """The package in `tree` on the model in `folder`."""
    plain = entry("tilewright", folder, folder, threads, sys.executable, label)
    return replace(plain, worker=("-c", START, str(tree)))


def ratios(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, float]:
    """Before / after of each model that both commits ran."""
    times: dict[str, list[float]] = {}
    for row in rows:
        if key in row:
            times.setdefault(row["model"], []).append(row[key])
    return {model: both[0] / both[1] for model, both in times.items() if len(both) == 2}


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """The ratio of every model by minima and by medians, and their geometric means."""
    least, typical = ratios(rows, "min_ms"), ratios(rows, "median_ms")
    if not least:
        return "no model ran at both commits"
    lines = [f"{'before / after':20} {'minima':>8} {'medians':>8}"]
    lines += [f"{model:20} {least[model]:8.3f} {typical[model]:8.3f}" for model in least]
    means = [geometric_mean(list(one.values())) for one in (least, typical)]
    lines.append(f"{'geometric mean':20} {means[0]:8.3f} {means[1]:8.3f}")
    lines.append(f"{'median':20} {_median(least):8.3f} {_median(typical):8.3f}")
    return "\n".join(lines)


def _median(ratio_of: Mapping[str, float]) -> float:
    return statistics.median(ratio_of.values())


def main() -> None:
    """Measure, print the tables and the ratios, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="a commit")
    parser.add_argument("after", help="a later one")
    parser.add_argument("models", nargs="*", help="models or groups (default: all models)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3, help="one commit's turn")
    parser.add_argument("--cache", type=Path, default=HERE / "results" / "cache")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--resume", action="store_true", help="keep what is in that file")
    arguments = parser.parse_args()
    settings = HarnessSettings(rounds=arguments.rounds, seconds=arguments.seconds)
    rows = known_rows(arguments)
    done = {row["model"] for row in rows}
    machine = describe_machine((1, arguments.threads))
    with ExitStack() as stack:
        labels = (arguments.before, arguments.after)
        trees = {label: stack.enter_context(checkout(label)) for label in labels}
        for model in choose(arguments.models, arguments.cache):
            if model in done:
                continue
            folder = arguments.cache.resolve() / model
            pair = [entry_of(name, t, folder, arguments.threads) for name, t in trees.items()]
            fresh = [{"model": model, **r.summary()} for r in measure(pair, settings)]
            print(f"{model}\n{table(fresh)}", flush=True)
            rows += fresh
            if arguments.json:
                write(arguments.json, machine, rows)
    print(summary(rows))


if __name__ == "__main__":
    main()
