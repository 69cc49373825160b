"""Candidates built side by side, each in one of several worker processes.

The pool knows nothing of compilers: it is given the command that starts a worker, which takes
requests `{"workload": folder, "trace": text or null, "target": text, "out": path}`, writes the
model to `out` and replies `{}`. A trace of null asks for the built-in schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tilewright.tune.measure.process import Answer, Limits, WorkerProcess, wait


@dataclass(frozen=True)
class BuildRequest:
    """What a build worker is asked for; the fields are those of the JSON object."""

    workload: str
    trace: str | None
    target: str
    out: str


class BuildPool:
    """At most `size` workers, which live until `close`."""

    def __init__(
        self, argv: Sequence[str], size: int, seconds: float = 60.0, limits: Limits | None = None
    ) -> None:
        self.seconds = seconds
        self._workers = [WorkerProcess(argv, limits) for _ in range(max(1, size))]

    def build(self, requests: Sequence[BuildRequest]) -> list[Answer]:
        """What came of each request, in their order."""
        answers: dict[int, Answer] = {}
        waiting = list(enumerate(requests))[::-1]
        free, busy = list(self._workers), dict[WorkerProcess, int]()
        try:
            while waiting or busy:
                while waiting and free:
                    number, request = waiting.pop()
                    worker = free.pop()
                    worker.begin(asdict(request), self.seconds)
                    busy[worker] = number
                for worker in wait(list(busy)):
                    answers[busy.pop(worker)] = worker.take()
                    free.append(worker)
        except BaseException:
            self.close()  # what they are doing is of no use any more
            raise
        return [answers[number] for number in range(len(requests))]

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.close()
