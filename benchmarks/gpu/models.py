"""Whole models on a GPU, in f32 and fp16, beside torch, eager and compiled by Inductor, and JAX.

    python benchmarks/gpu/models.py [resnet50 ...] [--batches 1,32] [--precisions fp16,f32]
        [--engines ours,eager,inductor,jax] [--json models.json] [--missing] [--workers 14]

Every model at a batch is a process of `one_model.py`: as many at once as there are processors for,
the most telling ones first. They export and compile side by side and take turns on the GPU. One
that crashes or hangs costs its own figures alone. All figures are in the JSON a second after they
are known, added to those that were there; with `--missing`, only what is not there is measured.
With one worker, what is compiled has all processors to itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from tilewright.core.worker.crash import reason

HERE = Path(__file__).resolve().parent
# Those of which most is to be learnt come first, then what takes long.
FIRST = ("resnet50", "bert_base")
NAMES = (
    "gpt2_decode gpt2 efficientnet_b0 convnext_t vit_b16 mobilenet_v2 minilm dlrm lstm "
    "ocr_recognize ocr_detect silero_vad magika"
).split()
SPARE = 2
LIMIT = 240
# Each process has few threads where there are many processes.
CROWDED = {"OMP_NUM_THREADS": "2", "TORCHINDUCTOR_COMPILE_THREADS": "1"}

Figures = dict[str, Any]
Rows = dict[str, Figures]
"""By model, batch and precision: the figures of each engine."""
Job = tuple[str, int]


def in_order(names: Iterable[str], batches: Iterable[int]) -> list[Job]:
    """All models at all batches, the most telling first."""
    jobs = [(name, batch) for batch in batches for name in names]
    return sorted(jobs, key=lambda job: job[0] not in FIRST)


def is_known(rows: Rows, job: Job, precisions: list[str], engines: list[str]) -> bool:
    """Whether every engine has given figures of a model, or told why not."""
    wanted = [rows.get(f"{job[0]} {job[1]} {precision}", {}) for precision in precisions]
    return all(row.keys() >= set(engines) for row in wanted)


class Runner:
    """Starts the processes, and gathers what they write."""

    def __init__(self, folder: Path, precisions: list[str], engines: list[str], limit: int) -> None:
        self.folder, self.precisions, self.engines = folder, precisions, engines
        self.limit = limit
        self.environment: dict[str, str] = {}
        self.failures: Rows = {}
        self.figures = Path(tempfile.mkdtemp(dir=folder))

    def run(self, job: Job) -> str:
        """Measure one model in a process of its own; a line that says how that ended."""
        start = time.monotonic()
        name = f"{job[0]}-{job[1]}"
        words = [sys.executable, "-u", str(HERE / "one_model.py"), job[0], str(job[1])]
        words += ["--precisions", ",".join(self.precisions), "--engines", ",".join(self.engines)]
        words += ["--work", str(self.folder), "--json", str(self.figures / f"{name}.json")]
        log = self.figures / f"{name}.log"
        environment = {**os.environ, **self.environment}
        with log.open("w") as out:
            try:
                done = subprocess.run(
                    words, stdout=out, stderr=out, timeout=self.limit, env=environment, check=False
                )
                ended = f"status {done.returncode}" if done.returncode else "done"
            except subprocess.TimeoutExpired:
                ended = f"stopped after {self.limit} s"
        if ended.startswith("status"):
            said = log.read_text(errors="replace")
            self.failures |= self._failed(job, f"{ended}: {reason(said)}")
        elif ended != "done":
            self.failures |= self._failed(job, ended)
        return f"{name} {ended} {time.monotonic() - start:.0f} s"

    def _failed(self, job: Job, why: str) -> Rows:
        failures = {engine: {"failure": why} for engine in self.engines}
        return {f"{job[0]} {job[1]} {precision}": failures for precision in self.precisions}

    def gathered(self) -> Rows:
        """What is known so far; what a process had measured before it failed is no failure."""
        rows = {name: dict(row) for name, row in self.failures.items()}
        for path in self.figures.glob("*.json"):
            rows = added(rows, json.loads(path.read_text()))
        return rows


def added(before: Rows, more: Rows) -> Rows:
    """Rows with the figures of more engines, or newer ones."""
    return {name: before.get(name, {}) | more.get(name, {}) for name in {**before, **more}}


def line(name: str, row: Figures) -> str:
    """A row as text."""
    cells = [f"{engine} {figures.get('ms', 'failed')}" for engine, figures in row.items()]
    mine = row.get("ours", {})
    why = [mine[key] for key in ("error", "compile_s", "slowest", "failure") if key in mine]
    return f"{name:24} {' '.join(cells)} {why}"


def measure_all(runner: Runner, jobs: list[Job], workers: int, rows: Rows, json_file: Path) -> Rows:
    """Run all; the file always has what is known."""
    found = rows
    with ThreadPoolExecutor(workers) as pool:
        waiting: set[Future[str]] = {pool.submit(runner.run, job) for job in jobs}
        while waiting:
            done, waiting = wait(waiting, timeout=1)
            for future in done:
                print(future.result(), flush=True)
            found = added(rows, runner.gathered())
            fresh = json_file.with_suffix(".fresh")
            fresh.write_text(json.dumps(found, indent=1))
            fresh.replace(json_file)
    return found


def main() -> None:
    """Measure what was asked for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*FIRST, *NAMES])
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--precisions", default="fp16,f32")
    parser.add_argument("--engines", default="ours,eager,inductor,jax")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1) - SPARE))
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds of one process")
    parser.add_argument("--missing", action="store_true", help="only what is not in the JSON")
    parser.add_argument("--json", type=Path, default=Path("models.json"))
    parser.add_argument("--work", type=Path, default=None, help="keeps what is exported")
    given = parser.parse_args()
    folder = given.work or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    precisions, engines = given.precisions.split(","), given.engines.split(",")
    rows: Rows = json.loads(given.json.read_text()) if given.json.exists() else {}
    jobs = in_order(given.names, map(int, given.batches.split(",")))
    if given.missing:
        jobs = [job for job in jobs if not is_known(rows, job, precisions, engines)]
    runner = Runner(folder, precisions, engines, given.limit)
    if given.workers > 1:
        runner.environment = CROWDED
    rows = measure_all(runner, jobs, given.workers, rows, given.json)
    for name, row in rows.items():
        print(line(name, row))


if __name__ == "__main__":
    main()
