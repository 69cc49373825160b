"""Candidates and their traces in, results out: built in parallel, then run one at a time.

    with Measurer(build_argv) as measurer:
        results = measurer.measure(job, [(candidate, trace), ...])
        comparison = measurer.head_to_head(job, trace, None)

Nothing runs while something is built. Whatever happens to a candidate costs that candidate only. A
full disk is no candidate's fault: what was built is measured and removed, the rest built again, and
when not even one can be built the search cannot go on.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from tilewright.core.errors import TuneError
from tilewright.core.worker.process import Answer, Limits
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.measure.build_pool import BuildPool, BuildRequest
from tilewright.tune.measure.evaluator import Effort
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.scratch_dir import scratch_folder
from tilewright.tune.measure.significance import Comparison, faster
from tilewright.tune.measure.workers import RETRIED_FAILURES, check_started, tuning_worker

RUN_WORKER = (sys.executable, "-m", "tilewright.tune.measure.run_worker")
Program = tuple[Candidate, str]
OnResult = Callable[[Result, str], object]


@dataclass(frozen=True)
class MeasureSettings:
    """Seconds that building and running a candidate may take, what workers may use, and so on.

    Loading two whole models may take `load_seconds` more: the driver of a GPU assembles their
    kernels. Two programs are compared in as many `rounds` as it takes, within these bounds.
    """

    builders: int = 2
    build_seconds: float = 60.0
    run_seconds: float = 10.0
    limits: Limits = field(default_factory=Limits)
    effort: Effort = field(default_factory=Effort)
    rounds: tuple[int, int] = (40, 400)
    rounds_seconds: float = 3.0
    model_seconds: float = 12.0
    load_seconds: float = 0.0


class Measures(Protocol):
    """The interface of a measurer, on this machine or on a cluster; see `Measurer`."""

    def measure(
        self,
        job: Job,
        programs: Sequence[Program],
        incumbent: float = math.inf,
        on_result: OnResult = ...,
    ) -> list[Result]:
        """The result of each program, in order."""

    def head_to_head(self, job: Job, first: str | None, second: str | None) -> Comparison:
        """Whether the first trace is faster than the second."""

    def compare(self, job: Job, first: Path, second: Path) -> Comparison:
        """The same of two models that are built already."""


class Measurer:
    """The processes of a tuning session; `folder` is for its files, and goes with it."""

    def __init__(
        self,
        build: Sequence[str],
        settings: MeasureSettings | None = None,
        *,
        run: Sequence[str] = RUN_WORKER,
        parent: Path | None = None,
    ) -> None:
        self.settings = settings = settings or MeasureSettings()
        self._opened = ExitStack()
        self.folder = self._opened.enter_context(scratch_folder(parent))
        self._pool = BuildPool(build, settings.builders, settings.build_seconds, settings.limits)
        self._opened.callback(self._pool.close)
        self._runner = self._opened.enter_context(tuning_worker(run, settings.limits))
        self._built = self._taken = self._disturbed = 0

    def __enter__(self) -> Measurer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes and remove the folder."""
        self._opened.close()

    @property
    def disturbed(self) -> float:
        """The fraction of all times so far during which a thread was preempted.

        It says how busy the machine is with other things. For work on several threads, whose times
        cannot be corrected, a large fraction means that they are not to be trusted.
        """
        return self._disturbed / self._taken if self._taken else 0.0

    def measure(
        self,
        job: Job,
        programs: Sequence[Program],
        incumbent: float = math.inf,
        on_result: OnResult = lambda result, trace: None,
    ) -> list[Result]:
        """The result of each program, in order; `on_result` has each as soon as it is known.

        `incumbent` is the best time so far: what is clearly slower is not timed any longer.
        """
        results: dict[int, Result] = {}
        for number, result in self.each(job, programs, incumbent):
            results[number] = result
            on_result(result, programs[number][1])
        return [results[number] for number in range(len(programs))]

    def each(
        self, job: Job, programs: Sequence[Program], incumbent: float = math.inf
    ) -> Iterator[tuple[int, Result]]:
        """The same one by one, with the number of the program."""
        pending = dict(enumerate(programs))
        while pending:
            built = self._build(job, [trace for _, trace in pending.values()])
            no_room: dict[int, Program] = {}
            for (number, program), (path, answer) in zip(pending.items(), built, strict=True):
                if answer.kind == "disk":
                    path.unlink(missing_ok=True)  # what could be written of it
                    no_room[number] = program
                    continue
                result = self._result(job, program[0], path, answer, incumbent)
                incumbent = min(incumbent, result.seconds)
                yield number, result
            if len(no_room) == len(pending):
                raise _disk_full(built[0][1])
            pending = no_room

    def head_to_head(self, job: Job, first: str | None, second: str | None) -> Comparison:
        """Whether the first trace is faster than the second, timed interleaved in one process.

        A trace of None is the built-in schedule. A first that fails is not faster.
        """
        built = self._build(job, [first, second])
        try:
            failures = [answer.failure for _, answer in built if answer.failure]
            if failures:
                return Comparison(math.inf, 1.0, False, failures[0])
            paths = [path for path, _ in built]
            return self._compare(job, paths, self.settings.rounds_seconds, 0.0)
        finally:
            for path, _ in built:
                path.unlink(missing_ok=True)

    def compare(self, job: Job, first: Path, second: Path) -> Comparison:
        """The same of two whole models that are built already; of the job its arrays count.

        They take longer than kernels, and differ less.
        """
        settings = self.settings
        return self._compare(job, [first, second], settings.model_seconds, settings.load_seconds)

    def _compare(
        self, job: Job, models: Sequence[Path], seconds: float, loading: float
    ) -> Comparison:
        settings = self.settings
        how = {"rounds": settings.rounds, "seconds": seconds}
        answer = self._run(job, models, settings.run_seconds + loading + seconds, how)
        if answer.failure:
            return Comparison(math.inf, 1.0, False, answer.failure)
        return faster(*answer.reply["times"])

    def _build(self, job: Job, traces: Sequence[str | None]) -> list[tuple[Path, Answer]]:
        paths = []
        for _ in traces:
            self._built += 1
            paths.append(self.folder / f"{self._built}.tw")
        answers = self._pool.build(
            [
                BuildRequest(str(job.workload), trace, job.target, str(path), job.checked)
                for trace, path in zip(traces, paths, strict=True)
            ]
        )
        return list(zip(paths, answers, strict=True))

    def _result(
        self, job: Job, candidate: Candidate, path: Path, built: Answer, incumbent: float
    ) -> Result:
        if built.failure:
            path.unlink(missing_ok=True)
            return Result(candidate, (), built.failure)
        effort = self.settings.effort
        try:
            answer = self._run(
                job,
                [path],
                self.settings.run_seconds + effort.seconds,
                {
                    "effort": asdict(effort),
                    "incumbent": None if math.isinf(incumbent) else incumbent,
                },
            )
        finally:
            path.unlink(missing_ok=True)
        if answer.failure:
            return Result(candidate, (), answer.failure)
        self._taken += answer.reply["taken"]
        self._disturbed += answer.reply["disturbed"]
        return Result(candidate, tuple(answer.reply["times"][0]))

    def _run(
        self, job: Job, models: Sequence[Path], seconds: float, how: Mapping[str, Any]
    ) -> Answer:
        request = {**described(job), "models": list(map(str, models)), **how}
        self._runner.begin(request, seconds)
        used = self._runner.served > 0
        answer = self._runner.finish()
        if used and answer.kind in RETRIED_FAILURES:
            self._runner.close()
            answer = self._runner.ask(request, seconds)
        check_started(answer)
        if answer.failure:
            self._runner.close()
        return answer


def described(job: Job) -> Mapping[str, Any]:
    """What a request to the run worker says of its job."""
    return {
        "inputs": list(map(str, job.inputs)),
        "expected": list(map(str, job.expected)),
        "threads": job.threads,
        "cold": job.cold,
        "tolerance": dict(job.tolerance),
    }


def _disk_full(answer: Answer) -> TuneError:
    return TuneError(
        "measure.disk-full",
        f"candidates cannot be built: {answer.failure.removeprefix('disk: ')}",
        help="free some space where temporary files go (TMPDIR); what was measured is kept",
    )
