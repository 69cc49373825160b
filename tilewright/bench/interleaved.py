"""Interleaved measurement of engines: they load one after the other, then run in rounds.

In every round each engine runs for some seconds while the others are stopped, in a new order each
round, so that no engine's waiting threads disturb another and drift of the machine affects all
alike. Before each run the harness waits for an idle machine, up to a timeout for all of them
together. Disturbed runs count only where there are not two undisturbed ones.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tilewright.bench.engine_process import EngineFailed, EngineProcess
from tilewright.bench.wait_idle import wait_until_idle
from tilewright.core.host.machine_load import IDLE

WORKER = ("-m", "tilewright.bench.worker")
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "TVM_NUM_THREADS",
)
# Where engines keep what they compiled: a folder of the day, so that compiling is measured.
_CACHE_VARIABLES = ("TW_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")


@dataclass(frozen=True)
class Entry:
    """What is measured as one row: an engine on a model with given inputs.

    `outputs` is a file for the outputs of the model, by `output_names`; `expected` one that they
    are compared with. `worker` are the interpreter's arguments that start the engine's process.
    `roofline`, `tuned` and `disable_passes` are those of `EngineJob`.
    """

    label: str
    engine: str
    model: str
    inputs: str
    threads: int
    expected: str | None = None
    outputs: str | None = None
    output_names: tuple[str, ...] = ()
    dims: Mapping[str, int] = field(default_factory=dict)
    python: str = sys.executable
    worker: tuple[str, ...] = WORKER
    keeps: bool = False
    roofline: Mapping[str, Any] | None = None
    tuned: str | None = None
    disable_passes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HarnessSettings:
    """How long to measure: rounds, seconds of each engine in a round, and timeouts in seconds.

    `idle_timeout` is for all waiting for an idle machine together, `timeout` for one answer. What
    takes longer than `slow` seconds for one run is run once only.
    """

    rounds: int = 7
    seconds: float = 0.4
    idle_timeout: float = 30.0
    timeout: float = 600.0
    slow: float = 10.0


@dataclass
class EngineResult:
    """What was measured of one entry."""

    label: str
    report: dict[str, Any] = field(default_factory=dict)
    samples: list[Mapping[str, Any]] = field(default_factory=list)
    failure: str | None = None

    def counted(self) -> list[Mapping[str, Any]]:
        """The samples on an idle machine, or all where there are not two such."""
        idle = [sample for sample in self.samples if sample["others"] < IDLE]
        return idle if len(idle) >= 2 else self.samples

    def summary(self) -> dict[str, Any]:
        """The figures of this row."""
        if self.failure is not None:
            return {"engine": self.label, "failure": self.failure}
        runs = [ms for sample in self.counted() for ms in sample["ms"]]
        row = {
            "engine": self.label,
            "min_ms": min(runs),
            "median_ms": statistics.median(runs),
            "runs": len(runs),
            "cpu_ms": min(sample["cpu_ms"] for sample in self.samples),
            "others": statistics.mean(sample["others"] for sample in self.counted()),
            **self.report,
        }
        row["run_mb"] = self.samples[-1]["run_mb"]
        return {key: value for key, value in row.items() if value is not None}


def measure(
    entries: Sequence[Entry],
    settings: HarnessSettings,
    show: Callable[[str], None] = lambda what: None,
) -> list[EngineResult]:
    """Load every entry, then run them in rounds; one that fails is not run any more."""
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as folder:
        harness = _Harness(entries, settings, Path(folder))
        try:
            harness.load(show)
            harness.run_rounds(show)
        finally:
            harness.close()
    return [harness.results[entry.label] for entry in entries]


class _Harness:
    """The processes of one comparison."""

    def __init__(self, entries: Sequence[Entry], settings: HarnessSettings, folder: Path) -> None:
        self.entries = {entry.label: entry for entry in entries}
        assert len(self.entries) == len(entries), "labels must differ"
        self.settings = settings
        self.folder = folder
        self.workers: dict[str, EngineProcess] = {}
        self.results = {label: EngineResult(label) for label in self.entries}
        self.idle_timeout = settings.idle_timeout

    def load(self, show: Callable[[str], None]) -> None:
        """Start and load one entry after the other; one that keeps what it compiles, twice."""
        for number, (label, entry) in enumerate(self.entries.items()):
            show(f"load {label}")
            job = self.folder / f"{number}.json"
            job.write_text(json.dumps(asdict(entry)))
            cold = self._start(label, job)
            if cold is None:
                continue
            self.results[label].report = {
                **cold,
                "compile_s": cold["load_s"] + cold["first_ms"] / 1e3,
                "compile_peak_mb": cold["load_peak_mb"],
            }
            if entry.keeps:
                self.workers.pop(label).close()
                self.results[label].report |= self._start(label, job) or {}

    def _start(self, label: str, job: Path) -> dict[str, Any] | None:
        entry = self.entries[label]
        variables = dict.fromkeys(_THREAD_VARIABLES, str(entry.threads))
        variables |= dict.fromkeys(_CACHE_VARIABLES, str(self.folder / "cache"))
        command = [entry.python, *entry.worker, entry.engine, str(job)]
        self.workers[label] = EngineProcess(command, variables)
        return self._attempt(label, self.workers[label].load, self.settings.timeout)

    def run_rounds(self, show: Callable[[str], None]) -> None:
        """Run every engine once a round, then ask each for the times of its kernels."""
        settings = self.settings
        for number in range(settings.rounds):
            show(f"round {number + 1} of {settings.rounds}")
            running = [label for label in self._alive() if not self._is_slow(label)]
            for label in random.sample(running, len(running)):
                self.idle_timeout = wait_until_idle(self.idle_timeout)
                sample = self.workers[label].sample
                answer = self._attempt(label, sample, settings.seconds, settings.timeout)
                if answer is not None:
                    self.results[label].samples.append(answer)
        for label in self._alive():
            answer = self._attempt(label, self.workers[label].ask, "kernels", settings.timeout)
            self.results[label].report["kernels"] = (answer or {}).get("kernels") or None

    def _is_slow(self, label: str) -> bool:
        samples = self.results[label].samples
        return bool(samples) and min(samples[0]["ms"]) > 1e3 * self.settings.slow

    def _alive(self) -> list[str]:
        return [label for label, result in self.results.items() if result.failure is None]

    def _attempt(
        self, label: str, action: Callable[..., dict[str, Any]], *arguments: Any
    ) -> dict[str, Any] | None:
        try:
            return action(*arguments)
        except EngineFailed as error:
            self.results[label].failure = str(error)
            return None

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.close()
