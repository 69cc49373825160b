"""Compare the latency of engines on the models of the zoo, side by side in one run.

    python benchmarks/latency.py                    # all models, all engines that are installed
    python benchmarks/latency.py resnet50 kernels/gemm_512 --engines tilewright,openvino
    python benchmarks/latency.py kernels --json kernels.json
    python benchmarks/latency.py bert_base_dynamic --data-of bert_base

Each engine runs in a process of its own with the same number of threads. They load one after the
other, then take turns: in every round each engine runs for `--seconds` while the others are
stopped, so no engine's waiting threads disturb another, and drift of the machine meets all alike.
`others` is the share of one core that unrelated processes used meanwhile. A turn waits for a quiet
machine while `--patience` lasts, and disturbed turns count only where there are not two quiet ones.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engines import ENGINES, ON_REQUEST, reason
from roofline import describe_machine

HERE = Path(__file__).resolve().parent
BASELINE = "onnxruntime"
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "TVM_NUM_THREADS",
)
QUIET = 0.1  # share of a core that others may use
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Task:
    """One model to measure: the folder of its file, and that of the inputs and expected outputs."""

    name: str
    folder: Path
    data: Path
    threads: int


def busy_seconds() -> float:
    """Seconds all cores together have been busy since the machine started, stolen time included."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, interrupt, soft, steal = map(int, fields)
    return (user + nice + system + interrupt + soft + steal) / TICKS


def own_seconds(pid: int) -> float:
    """Processor seconds a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def wait_until_quiet(patience: float) -> float:
    """Sleep until others use little of the machine, `patience` seconds at most; return the rest."""
    while patience > 0:
        busy, start = busy_seconds(), time.perf_counter()
        time.sleep(min(0.3, patience))
        waited = time.perf_counter() - start
        patience -= waited
        if busy_seconds() - busy < QUIET * waited:
            break
    return max(0.0, patience)


class WorkerError(Exception):
    """A worker ended or went silent."""


class Worker:
    """An engine in its own process, stopped whenever it is not its turn."""

    def __init__(self, engine: str, task: Task, python: str) -> None:
        """Start the process; `load` waits for it."""
        self.log = tempfile.TemporaryFile("w+")
        self.buffer = b""
        threads = {name: str(task.threads) for name in THREAD_VARIABLES}
        command = [python, str(HERE / "engines.py"), engine, str(task.folder), str(task.data)]
        self.process = subprocess.Popen(
            [*command, str(task.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            bufsize=0,
            start_new_session=True,
            env={**os.environ, **threads, "PYTHONPATH": str(HERE.parent)},
        )

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the process and any children it has."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def read(self, timeout: float) -> dict[str, Any]:
        """Return the next answer."""
        stdout = self.process.stdout
        assert stdout is not None
        while b"\n" not in self.buffer:
            if not select.select([stdout], [], [], timeout)[0]:
                raise WorkerError(f"no answer in {timeout:.0f} s")
            chunk = os.read(stdout.fileno(), 1 << 16)
            if not chunk:
                raise WorkerError(self.last_words())
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def last_words(self) -> str:
        """Say how the process ended."""
        status = self.process.wait()
        self.log.seek(0)
        return f"exit status {status}: {reason(self.log.read())}"

    def load(self, timeout: float) -> dict[str, Any]:
        """Wait until the model is loaded, then stop the process."""
        answer = self.read(timeout)
        self.send_signal(signal.SIGSTOP)
        return answer

    def turn(self, seconds: float, timeout: float) -> dict[str, Any]:
        """Let the engine run for `seconds`; others' share of a core is added to its answer."""
        assert self.process.stdin is not None
        mine = (self.process.pid, os.getpid())
        self.send_signal(signal.SIGCONT)
        busy, own = busy_seconds(), sum(map(own_seconds, mine))
        self.process.stdin.write(f"{seconds}\n".encode())
        answer = self.read(timeout)
        busy, own = busy_seconds() - busy, sum(map(own_seconds, mine)) - own
        self.send_signal(signal.SIGSTOP)
        return {**answer, "others": max(0.0, busy - own) / (sum(answer["ms"]) / 1e3)}

    def close(self) -> None:
        """End the process."""
        self.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()


@dataclass
class Result:
    """What was measured of one engine on one model."""

    model: str
    engine: str
    threads: int
    load_s: float = math.nan
    first_ms: float = math.nan
    error: float = math.nan
    flops: float | None = None
    turns: list[Mapping[str, Any]] = field(default_factory=list)
    failure: str | None = None

    def counted(self) -> list[Mapping[str, Any]]:
        """The turns on a quiet machine, or all where there are not two such."""
        quiet = [turn for turn in self.turns if turn["others"] < QUIET]
        return quiet if len(quiet) >= 2 else self.turns

    def runs(self) -> list[float]:
        """Milliseconds of each run that counts."""
        return [ms for turn in self.counted() for ms in turn["ms"]]

    def summary(self, baseline: Result | None) -> dict[str, Any]:
        """The figures of this row; the ratios are to the baseline's, below one being faster."""
        row: dict[str, Any] = {"model": self.model, "engine": self.engine, "threads": self.threads}
        if self.failure is not None:
            return {**row, "failure": self.failure}
        runs = self.runs()
        row |= {"min_ms": min(runs), "median_ms": statistics.median(runs), "runs": len(runs)}
        if baseline is not None and baseline.failure is None:
            row["min_ratio"] = row["min_ms"] / min(baseline.runs())
            row["median_ratio"] = row["median_ms"] / statistics.median(baseline.runs())
        row["others"] = statistics.mean(turn["others"] for turn in self.counted())
        row["peak_mb"] = max(turn["peak_mb"] for turn in self.turns)
        row |= {"load_s": self.load_s, "first_ms": self.first_ms, "error": self.error}
        return row if self.flops is None else {**row, "flops": self.flops}


def measure(task: Task, pythons: Mapping[str, str], arguments: argparse.Namespace) -> list[Result]:
    """Run all engines on one model in interleaved rounds."""
    results = {name: Result(task.name, name, task.threads) for name in pythons}
    workers: dict[str, Worker] = {}
    patience = arguments.patience

    def attempt(name: str, action: str, *args: float) -> dict[str, Any] | None:
        try:
            return getattr(workers[name], action)(*args)
        except (WorkerError, BrokenPipeError, ProcessLookupError, FileNotFoundError) as error:
            results[name].failure = str(error)
            return None

    try:
        for name, python in pythons.items():
            workers[name] = Worker(name, task, python)
            for key, value in (attempt(name, "load", arguments.timeout) or {}).items():
                setattr(results[name], key, value)
        for _ in range(arguments.rounds):
            alive = [name for name in workers if results[name].failure is None]
            for name in random.sample(alive, len(alive)):
                patience = wait_until_quiet(patience)
                answer = attempt(name, "turn", arguments.seconds, arguments.timeout)
                if answer is not None:
                    results[name].turns.append(answer)
    finally:
        for worker in workers.values():
            worker.close()
    return list(results.values())


COLUMNS = (  # heading, key, format
    ("engine", "engine", "<14"),
    ("min ms", "min_ms", ">10.3f"),
    ("median ms", "median_ms", ">10.3f"),
    ("x min", "min_ratio", ">7.2f"),
    ("x median", "median_ratio", ">9.2f"),
    ("load s", "load_s", ">8.2f"),
    ("peak MB", "peak_mb", ">8.0f"),
    ("error", "error", ">9.1e"),
    ("others", "others", ">7.0%"),
)


def width(form: str) -> str:
    """The alignment and width of a format, for headings and empty cells."""
    return form[0] + form[1:].split(".")[0].rstrip("%")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of one model as text."""
    lines = ["  " + " ".join(format(heading, width(form)) for heading, _, form in COLUMNS)]
    for row in rows:
        if "failure" in row:
            lines.append(f"  {row['engine']:<14} failed: {row['failure']}")
            continue
        cells = (format(row[k], f) if k in row else format("-", width(f)) for _, k, f in COLUMNS)
        lines.append("  " + " ".join(cells))
    return "\n".join(lines)


def geometric_means(rows: Sequence[Mapping[str, Any]], engines: Sequence[str]) -> str:
    """One line an engine: the mean ratio to the baseline over the models both ran."""
    lines = []
    for engine in engines:
        ratios = [r["min_ratio"] for r in rows if r["engine"] == engine and "min_ratio" in r]
        if engine != BASELINE and ratios:
            mean = statistics.geometric_mean(ratios)
            lines.append(f"{engine}: {mean:.2f} x {BASELINE} (minima, {len(ratios)} models)\n")
    return "".join(lines)


def interpreters(engines: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Which interpreter runs each engine; `NAME=PATH` speaks of one engine, `PATH` of all."""
    pythons = dict.fromkeys(engines, sys.executable)
    for text in given:
        name, equals, path = text.rpartition("=")
        pythons.update({name: path} if equals else dict.fromkeys(engines, path))
    return {name: pythons[name] for name in engines}


def installed(pythons: Mapping[str, str]) -> list[str]:
    """The engines that their interpreters have the packages of."""
    found: dict[str, list[str]] = {}
    for python in set(pythons.values()):
        command = [python, str(HERE / "engines.py")]
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        output = subprocess.check_output(command, text=True, env=environment)
        found[python] = output.split()
    return [name for name, python in pythons.items() if name in found[python]]


def choose(names: Sequence[str], cache: Path) -> list[str]:
    """Models by name, those of a group (a folder of the cache) by its name; by default all alone.

    A name that is not there is an error that says how to make it.
    """
    found = sorted(
        str(path.parent.relative_to(cache))
        for pattern in ("*/model.onnx", "*/*/model.onnx")
        for path in cache.glob(pattern)
    )
    if not names:
        chosen = [name for name in found if "/" not in name]
        return chosen or sys.exit(f"no models in {cache}: run benchmarks/zoo.py first")
    chosen = []
    for name in names:
        matching = [one for one in found if one == name or one.startswith(f"{name}/")]
        if not matching:
            sys.exit(f"no {name} in {cache}: run benchmarks/zoo.py or benchmarks/kernels.py first")
        chosen += matching
    return chosen


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="models or groups (default: all models)")
    parser.add_argument("--engines", help="comma separated (default: the usual, installed)")
    parser.add_argument("--python", action="append", default=[], metavar="[ENGINE=]PATH")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.4, help="one engine's turn")
    parser.add_argument("--timeout", type=float, default=600, help="for loading and for a turn")
    parser.add_argument("--patience", type=float, default=30, help="a model's seconds to wait")
    parser.add_argument("--cache", type=Path, default=HERE / "results" / "cache")
    parser.add_argument("--data-of", metavar="MODEL", help="take inputs and outputs of that one")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    arguments = parser.parse_args()
    engines = arguments.engines.split(",") if arguments.engines else list(ENGINES)
    unknown = [name for name in engines if name not in ENGINES]
    if unknown:
        parser.error(f"unknown engine {', '.join(unknown)}; there are {', '.join(ENGINES)}")
    pythons = interpreters(engines, arguments.python)
    usual = [name for name in installed(pythons) if name not in ON_REQUEST]
    chosen = engines if arguments.engines else usual
    arguments.pythons = {name: pythons[name] for name in chosen}
    arguments.models = choose(arguments.models, arguments.cache)
    choose([arguments.data_of] if arguments.data_of else [], arguments.cache)
    return arguments


def main() -> None:
    """Measure, print the tables, write the JSON."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that stopped workers are ended too
    rows: list[dict[str, Any]] = []
    for model in arguments.models:
        cache: Path = arguments.cache.resolve()
        data = cache / (arguments.data_of or model)
        task = Task(model, cache / model, data, arguments.threads)
        results = measure(task, arguments.pythons, arguments)
        baseline = next((result for result in results if result.engine == BASELINE), None)
        fresh = [result.summary(baseline) for result in results]
        print(f"{model}, {arguments.threads} threads\n{table(fresh)}", flush=True)
        rows += fresh
    print(geometric_means(rows, list(arguments.pythons)), end="")
    if arguments.json:
        machine = describe_machine((1, arguments.threads))
        day = datetime.date.today().isoformat()
        report = {"date": day, "machine": machine, "results": rows}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    answered = {row["model"] for row in rows if "failure" not in row}
    if {row["model"] for row in rows} - answered:
        sys.exit(1)


if __name__ == "__main__":
    main()
