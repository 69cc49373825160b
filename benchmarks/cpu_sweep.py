"""Random operators and blocks, drawn anew for each seed, beside other engines on the CPU.

    python benchmarks/cpu_sweep.py --seed 7 [--count 110] [--kinds conv,pool] [--json FILE]
    python benchmarks/cpu_sweep.py --seed 7 --only 17 31           # some cases of it again
    python benchmarks/cpu_sweep.py --seed 7 8 9 --json benchmarks/results/sweep-cascadelake.json

What is drawn is in `random_cases.py`. Each engine has one process for the whole sweep, stopped
while another is measured; on each case they run in interleaved rounds. The ratio of a case is the
least time of the best other engine by ours. A case below 0.9 is measured again, longer; it counts
as behind only if that confirms it and our kernels reach less than 90 % of the machine's roofs.
Kinds weigh the same in the mean. Answers are compared with torch's in f64.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from engine_rows import OURS, geometric_mean, of_roof
from latency import WORKER, installed, interpreters, write
from machine import describe_machine
from operators import torch_kernel
from random_case import Case
from random_cases import KINDS, draw_cases
from sweep_tables import CPU_BEHIND, is_behind

from tilewright.bench.engine_process import EngineFailed, EngineProcess
from tilewright.runtime.roofline.machine_roofline import machine_roofline

ENGINES = (OURS, "onnxruntime", "openvino", "torch")
WRONG = 1e-3
TIMEOUT = 300.0
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass
class SweepEngine:
    """An engine's process, started with the first case and again after a crash."""

    name: str
    python: str
    threads: int
    folder: Path
    process: EngineProcess | None = None
    failure: str | None = None
    milliseconds: list[float] = field(default_factory=list)
    error: float | None = None

    def load(self, case: Path) -> None:
        """Load a case; what fails is kept as `failure`."""
        self.failure, self.error, self.milliseconds = None, None, []
        job = case / f"{self.name}.json"
        job.write_text(json.dumps(self._job(case)))
        try:
            if self.process is None:
                variables = dict.fromkeys(VARIABLES, str(self.threads))
                variables["TW_CACHE_DIR"] = str(self.folder / "cache")
                command = [self.python, *WORKER, self.name, str(job)]
                self.process = EngineProcess(command, variables)
                report = self.process.load(TIMEOUT)
            else:
                report = self.process.ask(f"load {job}", TIMEOUT)
            self.error = report["error"]
        except EngineFailed as error:
            self._fail(error)

    def _job(self, case: Path) -> dict[str, Any]:
        roofline = machine_roofline(self.threads).data() if self.name == OURS else None
        return {
            "model": str(case / "model.onnx"),
            "inputs": str(case / "inputs.npz"),
            "expected": str(case / "expected.npz"),
            "threads": self.threads,
            "dims": {},
            "roofline": roofline,
        }

    def run(self, seconds: float) -> None:
        """Run the case for some seconds."""
        if self.process is None:
            return
        try:
            self.milliseconds += self.process.ask(str(seconds), TIMEOUT)["ms"]
        except EngineFailed as error:
            self._fail(error)

    def kernels(self) -> list[dict[str, Any]]:
        """The times of our kernels beside their roofs."""
        if self.process is None:
            return []
        found: list[dict[str, Any]] = self.process.ask("kernels", TIMEOUT)["kernels"]
        return found

    def _fail(self, error: EngineFailed) -> None:
        self.failure = str(error)
        self.close()

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.close()
        self.process = None


def run_rounds(engines: Sequence[SweepEngine], rounds: int, seconds: float) -> None:
    """Let every engine run once a round, in a new order each time."""
    for _ in range(rounds):
        for engine in random.sample(engines, len(engines)):
            engine.run(seconds)


def ratio(engines: Sequence[SweepEngine]) -> tuple[float, str] | None:
    """The least time of the best other engine that answered rightly, by ours; and who it is."""
    ours, *others = engines
    timed = [e for e in others if e.milliseconds and (e.error is None or e.error < WRONG)]
    if not ours.milliseconds or not timed:
        return None
    best = min(timed, key=lambda engine: min(engine.milliseconds))
    return min(best.milliseconds) / min(ours.milliseconds), best.name


def measure_case(
    number: int,
    case: Case,
    seed: int,
    engines: Sequence[SweepEngine],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """One case: all engines, again if it seems behind."""
    folder = engines[0].folder / "sweep" / str(number)
    case.write(folder, number)
    with np.load(folder / "inputs.npz") as given:
        inputs = {n: torch.from_numpy(v) for n, v in given.items()}
    doubles = {n: v.double() if v.is_floating_point() else v for n, v in inputs.items()}
    expected = torch_kernel(folder / "model.onnx").double()(**doubles)
    np.savez(folder / "expected.npz", y=expected.numpy())
    for engine in engines:
        engine.load(folder)
    run_rounds(engines, arguments.rounds, arguments.seconds)
    found = ratio(engines)
    if found is not None and found[0] < CPU_BEHIND:
        run_rounds(engines, 3 * arguments.rounds, 2 * arguments.seconds)
        found = ratio(engines)
    row: dict[str, Any] = {"seed": seed, "number": number, "kind": case.kind, "case": case.text}
    row["ms"] = {e.name: min(e.milliseconds) for e in engines if e.milliseconds}
    row["errors"] = {e.name: e.error for e in engines if e.error is not None}
    row["failures"] = {e.name: e.failure for e in engines if e.failure}
    if found is not None:
        row |= {"ratio": found[0], "best": found[1]}
        if found[0] < CPU_BEHIND:
            row["kernels"] = engines[0].kernels()
            row["of_roof"] = of_roof(row)
    return row


def line_of(row: Mapping[str, Any]) -> str:
    """One case as a line of the table."""
    shown = f"{row['ratio']:6.2f} {row['best']:<12}" if "ratio" in row else f"{'-':>6} {'':12}"
    ours = row["ms"].get(OURS)
    time = "failed" if ours is None else f"{ours:.3f} ms"
    roof = f"  {row['of_roof']:.0%} of roof" if row.get("of_roof") else ""
    mark = "  BEHIND" if is_behind(row) else ""
    wrong = "".join(
        f"  {name} off by {error:.0e}" for name, error in row["errors"].items() if error >= WRONG
    )
    failed = "".join(f"  {name}: {text}" for name, text in row["failures"].items())
    head = f"{row['number']:4} {row['kind']:<15}{shown}{time:>12}"
    return f"{head}  {row['case']}{roof}{mark}{wrong}{failed}"


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Means and ranges of the kinds, and over all, kinds weighing the same."""
    by_kind: dict[str, list[float]] = {}
    for row in rows:
        if "ratio" in row:
            by_kind.setdefault(row["kind"], []).append(row["ratio"])
    lines = [f"{'kind':<16}{'mean':>6}{'least':>7}{'most':>8}{'cases':>7}"]
    for kind, ratios in by_kind.items():
        mean = geometric_mean(ratios)
        bounds = f"{min(ratios):7.2f}{max(ratios):8.2f}"
        lines.append(f"{kind:<16}{mean:6.2f}{bounds}{len(ratios):7}")
    whole = geometric_mean([geometric_mean(ratios) for ratios in by_kind.values()])
    behind = [row["number"] for row in rows if is_behind(row)]
    lines.append(f"all kinds alike {whole:6.2f}; behind: {behind or 'none'}")
    return "\n".join(lines)


def arguments_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line."""
    parser.add_argument("--seed", type=int, nargs="+", required=True)
    parser.add_argument("--count", type=int, default=5 * len(KINDS))
    parser.add_argument("--kinds", help="comma separated (default: all)")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of cases")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--python", action="append", default=[], metavar="[ENGINE=]PATH")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.06, help="of one engine in a round")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    return parser.parse_args()


def run_seed(
    seed: int, cases: Sequence[Case], engines: Sequence[SweepEngine], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """The cases of a seed, each told as it is done."""
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        if arguments.only is None or number in arguments.only:
            rows.append(measure_case(number, case, seed, engines, arguments))
            print(line_of(rows[-1]), flush=True)
    print(f"seed {seed}\n{summary(rows)}", flush=True)
    return rows


def main() -> None:
    """Draw, measure, print, write."""
    arguments = arguments_of(argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that stopped workers are ended too
    kinds = arguments.kinds.split(",") if arguments.kinds else None
    pythons = interpreters(arguments.engines.split(","), arguments.python)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tilewright-sweep-") as name:
        folder, threads = Path(name), arguments.threads
        engines = [SweepEngine(e, pythons[e], threads, folder) for e in installed(pythons)]
        try:
            for seed in arguments.seed:
                rows += run_seed(seed, draw_cases(seed, arguments.count, kinds), engines, arguments)
        finally:
            for engine in engines:
                engine.close()
    if arguments.json:
        write(arguments.json, describe_machine((1, threads)), rows)


if __name__ == "__main__":
    main()
