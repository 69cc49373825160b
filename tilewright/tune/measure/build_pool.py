"""Candidates built side by side, each in one of several worker processes.

The pool knows nothing of compilers: it is given the command that starts a worker, which takes
requests with the fields of `BuildRequest`, writes the model to `out` and replies `{}`. A trace of
null asks for the built-in schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tilewright.core.worker.process import Answer, Limits, WorkerProcess, wait
from tilewright.tune.measure.workers import RETRIED_FAILURES, check_started, tuning_worker


@dataclass(frozen=True)
class BuildRequest:
    """What a build worker is asked for; the fields are those of the JSON object.

    A trace that is `checked` must keep every dependence.
    """

    workload: str
    trace: str | None
    target: str
    out: str
    checked: bool = True


class BuildPool:
    """At most `size` workers, which live until `close`."""

    def __init__(
        self, argv: Sequence[str], size: int, seconds: float = 60.0, limits: Limits | None = None
    ) -> None:
        self.seconds = seconds
        self._workers = [tuning_worker(argv, limits) for _ in range(max(1, size))]

    def build(self, requests: Sequence[BuildRequest]) -> list[Answer]:
        """What came of each request, in their order."""
        batch = _Batch(requests, self._workers, self.seconds)
        try:
            return batch.run()
        except BaseException:
            self.close()  # what they are doing is of no use any more
            raise

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.close()


class _Batch:
    """Requests on their way; those waiting are taken from the end."""

    def __init__(
        self, requests: Sequence[BuildRequest], workers: Sequence[WorkerProcess], seconds: float
    ) -> None:
        self.requests = requests
        self.seconds = seconds
        self.free = list(workers)
        self.busy: dict[WorkerProcess, tuple[int, bool]] = {}
        self.waiting = list(range(len(requests)))[::-1]
        self.answers: dict[int, Answer] = {}

    def run(self) -> list[Answer]:
        """What came of each request."""
        while self.waiting or self.busy:
            while self.waiting and self.free:
                self._begin(self.free.pop(), self.waiting.pop())
            for worker in wait(list(self.busy)):
                self._finish(worker)
        return [self.answers[number] for number in range(len(self.requests))]

    def _begin(self, worker: WorkerProcess, number: int) -> None:
        worker.begin(asdict(self.requests[number]), self.seconds)
        self.busy[worker] = number, worker.served > 0

    def _finish(self, worker: WorkerProcess) -> None:
        (number, used), answer = self.busy.pop(worker), worker.take()
        check_started(answer)
        if used and answer.kind in RETRIED_FAILURES:
            worker.close()  # what was built before may be to blame: once more, in a new process
            self._begin(worker, number)
            return
        self.answers[number] = answer
        self.free.append(worker)
