"""Candidates measured by the workers of a cluster: the interface of `Measurer`, on many machines.

    with connect("10.0.0.1:6379") as cluster, ClusterMeasurer(cluster, build, settings) as measurer:
        results = measurer.measure(job, [(candidate, trace), ...])

A worker gets candidates of jobs for its own target only. What a lost worker has not answered is
measured by others; what it has answered counts. When none is left the search cannot go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tilewright.core.errors import TuneError
from tilewright.core.worker.process import START_SECONDS
from tilewright.tune.candidate import Result
from tilewright.tune.measure.cluster.job_bundle import JobBundle, pack
from tilewright.tune.measure.cluster.transport import Cluster, Connection
from tilewright.tune.measure.cluster.work_queue import WorkQueue, distribute
from tilewright.tune.measure.cluster.worker import Message
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import MeasureSettings, OnResult, Program
from tilewright.tune.measure.significance import Comparison
from tilewright.tune.target_key import differences, versions


class ClusterMeasurer:
    """The workers of a tuning session; `lost` is called for each that is of no use, with why."""

    def __init__(
        self,
        cluster: Cluster,
        build: Sequence[str],
        settings: MeasureSettings | None = None,
        lost: Callable[[str], object] = lambda text: None,
    ) -> None:
        self.settings = settings or MeasureSettings()
        self._cluster = cluster
        self._lost = lost
        self._why: list[str] = []
        self._targets: dict[Connection, str] = {}
        self._sent: set[tuple[Connection, str]] = set()
        self._connections = list(cluster.start(build, self.settings))
        try:
            self._describe()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ClusterMeasurer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(gracefully=kind is None)

    def close(self, gracefully: bool = False) -> None:
        """End the workers; unless `gracefully`, they leave files that the next ones remove."""
        for connection in self._connections:
            connection.close(gracefully)
        self._connections, self._targets = [], {}

    def measure(
        self,
        job: Job,
        programs: Sequence[Program],
        incumbent: float = math.inf,
        on_result: OnResult = lambda result, trace: None,
    ) -> list[Result]:
        """The result of each program, in order; `on_result` has each as soon as it is known."""
        results: dict[int, Result] = {}
        best = incumbent

        def begin(connection: Connection, numbers: Sequence[int]) -> None:
            traces = [programs[number][1] for number in numbers]
            connection.begin("measure", *self._job_arguments(connection, job), traces, best)

        def on_answer(_: Connection, number: int, message: Message) -> None:
            nonlocal best
            candidate, trace = programs[number]
            result = Result(candidate, tuple(message["times"]), message["failure"])
            best = min(best, result.seconds)
            results[number] = result
            on_result(result, trace)

        self._distribute(job, len(programs), begin, on_answer)
        return [results[number] for number in range(len(programs))]

    def head_to_head(self, job: Job, first: str | None, second: str | None) -> Comparison:
        """Whether the first trace is faster than the second, both on one machine."""

        def call(worker: Connection) -> tuple[Any, ...]:
            return ("head_to_head", *self._job_arguments(worker, job), first, second)

        return self._comparison(job, call)

    def compare(self, job: Job, first: Path, second: Path) -> Comparison:
        """The same of two models that are built already; of the job its arrays count."""
        bundle = pack(job, [first, second])
        return self._comparison(job, lambda _: ("compare", bundle, first.name, second.name))

    def _comparison(self, job: Job, call: Callable[[Connection], tuple[Any, ...]]) -> Comparison:
        found: list[Comparison] = []

        def on_answer(_: Connection, __: int, message: Message) -> None:
            found.append(Comparison(**{k: v for k, v in message.items() if k != "number"}))

        self._distribute(job, 1, lambda worker, _: worker.begin(*call(worker)), on_answer)
        return found[0]

    def _distribute(
        self,
        job: Job,
        count: int,
        begin: Callable[[Connection, Sequence[int]], None],
        on_answer: Callable[[Connection, int, Message], None],
    ) -> None:
        queue = WorkQueue(count, self.settings.builders, begin, on_answer, self._drop)
        try:
            distribute(self._cluster, lambda: self._eligible(job), queue, _timeout(self.settings))
        except BaseException:
            self.close()  # what they are doing is of no use any more
            raise
        if queue.waiting:
            raise self._no_worker(job)

    def _eligible(self, job: Job) -> list[Connection]:
        """Workers on machines that the job is for, always in the same order."""
        return [connection for connection, target in self._targets.items() if target == job.target]

    def _job_arguments(self, connection: Connection, job: Job) -> tuple[str, JobBundle | None]:
        """The name of a job, and its files where the worker does not have them."""
        key = repr((str(job.workload), job.target, job.threads, job.cold))
        known = (connection, key) in self._sent
        self._sent.add((connection, key))
        return key, None if known else pack(job)

    def _describe(self) -> None:
        """Ask each worker for its target and versions; those that do not answer are dropped."""
        described: dict[Connection, Message] = {}
        unasked = list(self._connections)

        def begin(connection: Connection, _: Sequence[int]) -> None:
            unasked.remove(connection)
            connection.begin("describe")

        def on_answer(connection: Connection, _: int, message: Message) -> None:
            described[connection] = message

        # None is asked twice: no other worker can answer for a lost one.
        queue = WorkQueue(len(unasked), 1, begin, on_answer, self._drop)
        distribute(self._cluster, lambda: list(unasked), queue, START_SECONDS)
        for connection in list(self._connections):
            self._accept(connection, described[connection])

    def _accept(self, connection: Connection, described: Message) -> None:
        ours = dict(versions())
        if described["versions"] == ours:
            self._targets[connection] = described["target"]
        else:
            self._drop(connection, f"it has {described['versions']}, the tuner {ours}")

    def _drop(self, connection: Connection, why: str) -> None:
        self._why.append(f"{connection.name}: {why}")
        self._lost(self._why[-1])
        self._targets.pop(connection, None)
        self._connections.remove(connection)
        connection.close(gracefully=False)

    def _no_worker(self, job: Job) -> TuneError:
        others = [
            f"{worker.name}: another machine, it differs in {', '.join(differences(t, job.target))}"
            for worker, t in self._targets.items()
        ]
        reasons = "; ".join([*self._why, *others]) or "it has none"
        return TuneError(
            "cluster.no-worker",
            f"no worker of the cluster can measure for this machine's target: {reasons}",
            help="see what ended them, or add machines like this one; what was measured is kept",
        )


def _timeout(settings: MeasureSettings) -> float:
    """The longest time between two messages of a live worker, with a margin of two."""
    building = START_SECONDS + 2 * settings.build_seconds
    timing = max(settings.effort.seconds, settings.rounds_seconds)
    return 2 * (building + START_SECONDS + settings.run_seconds + timing)
