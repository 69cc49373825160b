"""Candidates measured by the workers of a cluster: the same as `Measurer`, on many machines.

    with connect("10.0.0.1:6379") as cluster, ClusterMeasurer(cluster, build, settings) as measurer:
        results = measurer.measure(job, [(candidate, trace), ...])

A worker gets candidates of jobs for its own target only. One that goes leaves what it had not
answered to the others; what it had answered counts. When none is left the search cannot go on.
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
from tilewright.tune.measure.cluster.job_bundle import Parcel, pack
from tilewright.tune.measure.cluster.transport import Cluster, Link
from tilewright.tune.measure.cluster.work_queue import Work, share
from tilewright.tune.measure.cluster.worker import Message
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import MeasureSettings, OnResult, Program
from tilewright.tune.measure.significance import Comparison
from tilewright.tune.target_key import differences, versions


class ClusterMeasurer:
    """The workers of a tuning session; `lost` is told of each that is of no use, and why."""

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
        self._targets: dict[Link, str] = {}
        self._sent: set[tuple[Link, str]] = set()
        self._links = list(cluster.start(build, self.settings))
        try:
            self._declare()
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
        self.close(kindly=kind is None)

    def close(self, kindly: bool = False) -> None:
        """End the workers; those that are not asked to leave files that the next ones remove."""
        for link in self._links:
            link.close(kindly)
        self._links, self._targets = [], {}

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

        def begin(link: Link, numbers: Sequence[int]) -> None:
            traces = [programs[number][1] for number in numbers]
            link.begin("measure", *self._sending(link, job), traces, best)

        def told(_: Link, number: int, message: Message) -> None:
            nonlocal best
            candidate, trace = programs[number]
            result = Result(candidate, tuple(message["times"]), message["failure"])
            best = min(best, result.seconds)
            results[number] = result
            on_result(result, trace)

        self._share(job, len(programs), begin, told)
        return [results[number] for number in range(len(programs))]

    def head_to_head(self, job: Job, first: str | None, second: str | None) -> Comparison:
        """Whether the first trace is faster than the second, both on one machine."""
        return self._comparison(
            job, lambda link: ("head_to_head", *self._sending(link, job), first, second)
        )

    def compare(self, job: Job, first: Path, second: Path) -> Comparison:
        """The same of two models that are built already; of the job its arrays count."""
        parcel = pack(job, [first, second])
        return self._comparison(job, lambda link: ("compare", parcel, first.name, second.name))

    def _comparison(self, job: Job, call: Callable[[Link], tuple[Any, ...]]) -> Comparison:
        found: list[Comparison] = []

        def told(_: Link, __: int, message: Message) -> None:
            found.append(Comparison(**{k: v for k, v in message.items() if k != "number"}))

        self._share(job, 1, lambda link, _: link.begin(*call(link)), told)
        return found[0]

    def _share(
        self,
        job: Job,
        count: int,
        begin: Callable[[Link, Sequence[int]], None],
        told: Callable[[Link, int, Message], None],
    ) -> None:
        work = Work(count, self.settings.builders, begin, told, self._dismiss)
        try:
            share(self._cluster, lambda: self._able(job), work, _patience(self.settings))
        except BaseException:
            self.close()  # what they are doing is of no use any more
            raise
        if work.waiting:
            raise self._nobody(job)

    def _able(self, job: Job) -> list[Link]:
        """Workers on machines that the job is for, always in the same order."""
        return [link for link, target in self._targets.items() if target == job.target]

    def _sending(self, link: Link, job: Job) -> tuple[str, Parcel | None]:
        """The name of a job, and its files where the worker does not have them."""
        key = repr((str(job.workload), job.target, job.threads, job.cold))
        known = (link, key) in self._sent
        self._sent.add((link, key))
        return key, None if known else pack(job)

    def _declare(self) -> None:
        """Ask each worker what it is; those that do not say it in time stay out."""
        declared: dict[Link, Message] = {}
        unasked = list(self._links)

        def begin(link: Link, _: Sequence[int]) -> None:
            unasked.remove(link)
            link.begin("declare")

        def told(link: Link, _: int, message: Message) -> None:
            declared[link] = message

        # Nobody is asked twice: what one does not say of itself no other can.
        work = Work(len(unasked), 1, begin, told, self._dismiss)
        share(self._cluster, lambda: list(unasked), work, START_SECONDS)
        for link in list(self._links):
            self._welcome(link, declared[link])

    def _welcome(self, link: Link, declared: Message) -> None:
        ours = dict(versions())
        if declared["versions"] == ours:
            self._targets[link] = declared["target"]
        else:
            self._dismiss(link, f"it has {declared['versions']}, the tuner {ours}")

    def _dismiss(self, link: Link, why: str) -> None:
        self._why.append(f"{link.name}: {why}")
        self._lost(self._why[-1])
        self._targets.pop(link, None)
        self._links.remove(link)
        link.close(kindly=False)

    def _nobody(self, job: Job) -> TuneError:
        others = [
            f"{link.name}: another machine, it differs in {', '.join(differences(t, job.target))}"
            for link, t in self._targets.items()
        ]
        reasons = "; ".join([*self._why, *others]) or "it has none"
        return TuneError(
            "cluster.no-worker",
            f"no worker of the cluster can measure for this machine's target: {reasons}",
            help="see what ended them, or add machines like this one; what was measured is kept",
        )


def _patience(settings: MeasureSettings) -> float:
    """Seconds between two messages that cannot be work: all that may take time did, twice."""
    building = START_SECONDS + 2 * settings.build_seconds
    timing = max(settings.effort.seconds, settings.rounds_seconds)
    return 2 * (building + START_SECONDS + settings.run_seconds + timing)
