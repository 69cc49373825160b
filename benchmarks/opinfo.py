"""Every operator of torch's OpInfo through `torch.compile(backend="tilewright", fullgraph=True)`.

    python benchmarks/opinfo.py                                   # float32, forward
    python benchmarks/opinfo.py --backward --dtypes float32 float64
    python benchmarks/opinfo.py --ops 'nn.functional.*' softmax --count 2
    python benchmarks/opinfo.py --all --json benchmarks/results/opinfo.json --resume

At most `--count` seeded samples an operator and element type are compared with eager by OpInfo's
own tolerances, each compiled anew without the cache. What `aot_eager` cannot trace whole does not
count. Samples run in worker processes, so that one that dies costs only itself. Results are written
after each operator; `--resume` keeps those of the same commit.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from machine import describe_machine
from results_file import read_results, write_results
from revision import commit

from tilewright.core.worker.process import Limits, WorkerProcess, wait

WORKER = Path(__file__).with_name("opinfo_worker.py")
FULLY = "float32"
SAMPLED = ("float64", "int64", "bool", "bfloat16", "complex64")
SECONDS = 900.0
"""How long one sample may take: an endless one is ended; machines are shared."""


@dataclass
class Row:
    """What came of the samples of one operator, element type and direction."""

    op: str
    dtype: str
    backward: bool
    random: bool = False
    host: bool = False  # some of it is computed by LAPACK or in Python
    outcomes: dict[str, int] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)  # the first reason by outcome

    @property
    def key(self) -> tuple[bool, str, str]:
        """What tells it apart, and the order of rows."""
        return self.backward, self.dtype, self.op

    def add(self, outcome: str, why: str) -> None:
        """Count a sample."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        if why:
            self.why.setdefault(outcome, why)


@dataclass
class Task:
    """The row that a worker is at: `sample` is the next, `samples` how many there are."""

    row: Row
    count: int
    sample: int = 0
    samples: int = 1

    def request(self) -> dict[str, Any]:
        """What the worker is asked."""
        of = {"op": self.row.op, "dtype": self.row.dtype, "backward": self.row.backward}
        return {**of, "count": self.count, "sample": self.sample}

    def take(self, reply: Any, failure: str) -> None:
        """Count what came of the sample that was asked for."""
        self.sample += 1
        if failure:
            lost = "timeout" if failure.startswith("timeout") else "crashed"
            self.row.add(lost, failure)
            if self.sample == 1:
                self.samples = self.count  # at most; the next reply tells
            return
        self.samples = reply["samples"]
        if self.samples >= self.sample:
            self.row.random |= reply["random"]
            self.row.host |= reply["host"]
            self.row.add(reply["outcome"], reply.get("why", ""))


def run(rows: Sequence[tuple[Row, int]], jobs: int) -> Iterator[Row]:
    """Give each row when all of its samples have been run, `jobs` at a time."""
    waiting = iter([Task(row, count) for row, count in rows])
    workers = [
        WorkerProcess([sys.executable, str(WORKER)], limits=Limits(memory=12 << 30))
        for _ in range(jobs)
    ]
    tasks: dict[WorkerProcess, Task] = {}
    try:
        for worker in workers:
            _next(worker, waiting, tasks)
        while tasks:
            for worker in wait(list(tasks)):
                task, answer = tasks[worker], worker.take()
                task.take(answer.reply, answer.failure)
                if task.sample < task.samples:
                    worker.begin(task.request(), SECONDS)
                else:
                    yield task.row
                    _next(worker, waiting, tasks)
    finally:
        for worker in workers:
            worker.close()


def _next(worker: WorkerProcess, waiting: Iterator[Task], tasks: dict[WorkerProcess, Task]) -> None:
    """Give a worker its next task, or none."""
    task = next(waiting, None)
    if task is None:
        tasks.pop(worker, None)
    else:
        tasks[worker] = task
        worker.begin(task.request(), SECONDS)


def planned(given: argparse.Namespace) -> list[tuple[Row, int]]:
    """What is to be run: a row, and how many samples of it."""
    import torch
    from opinfo_samples import operators, takes

    passes = [(dtype, given.backward, given.count) for dtype in given.dtypes]
    if given.all:
        passes = [(FULLY, backward, given.count) for backward in (False, True)]
        passes += [(dtype, backward, 1) for dtype in SAMPLED for backward in (False, True)]
    return [
        (Row(name, dtype, backward), count)
        for dtype, backward, count in passes
        for name, op in operators().items()
        if any(fnmatch.fnmatch(name, pattern) for pattern in given.ops)
        and takes(op, getattr(torch, dtype), backward)
    ]


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", nargs="+", default=["*"], help="patterns of names")
    parser.add_argument("--dtypes", nargs="+", default=[FULLY])
    parser.add_argument("--count", type=int, default=6, help="samples an operator and type")
    parser.add_argument("--backward", action="store_true", help="gradients, too")
    parser.add_argument("--all", action="store_true", help="all that the page shows")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--resume", action="store_true", help="keep what is in that file")
    return parser.parse_args()


def known(path: Path) -> tuple[list[Row], float]:
    """The rows that an earlier run at this commit left, and how many minutes they took."""
    if not path.exists():
        return [], 0.0
    earlier = read_results(path)
    if earlier["commit"] != commit():
        sys.exit(f"{path} is of commit {earlier['commit']}, this is {commit()}")
    return [Row(**row) for row in earlier["results"]], earlier["minutes"]


def main() -> None:
    """Run what was asked for, print what is not right."""
    given = arguments()
    rows, minutes = known(given.json) if given.resume and given.json else ([], 0.0)
    done = {row.key for row in rows}
    plan = [(row, count) for row, count in planned(given) if row.key not in done]
    start, total, machine = time.monotonic(), Counter[str](), describe_machine(())
    for row in run(plan, given.jobs):
        rows.append(row)
        total.update(row.outcomes)
        kind = f"{row.dtype}{' backward' if row.backward else ''}"
        for outcome, why in row.why.items():
            print(f"{row.op:40} {kind} {outcome} {row.outcomes[outcome]} {why}", flush=True)
        if given.json:
            took = round(minutes + (time.monotonic() - start) / 60, 1)
            kept = [asdict(row) for row in sorted(rows, key=lambda row: row.key)]
            figures = {"torch": version("torch"), "minutes": took, "results": kept}
            write_results(given.json, machine, **figures)
    print(f"{dict(total)} in {(time.monotonic() - start) / 60:.0f} min")


if __name__ == "__main__":
    main()
