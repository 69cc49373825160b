"""A cluster without processes: workers that answer, and are lost, as a test asks for.

A trace is its own answer: `0.5` takes so many seconds, any other word is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.target.host import host
from tilewright.tune.measure.cluster.transport import WorkerLost
from tilewright.tune.measure.cluster.worker import Message
from tilewright.tune.target_key import target_text, versions

HERE = target_text(host())


@dataclass(eq=False)
class FakeConnection:
    """`goes_after` so many messages of all calls; `silent` never says anything."""

    name: str
    target: str = HERE
    versions: dict[str, str] = field(default_factory=lambda: dict(versions()))
    goes_after: float = float("inf")
    silent: bool = False
    problem: str = ""
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    said: int = 0
    closed: list[bool] = field(default_factory=list)
    stream: Iterator[Message] = field(default_factory=lambda: iter(()))

    def begin(self, method: str, *arguments: Any) -> None:
        assert not self.closed
        self.calls.append((method, *arguments))
        self.stream = getattr(self, f"_{method}")(*arguments)

    def take(self) -> Message | None:
        if self.said >= self.goes_after:
            raise WorkerLost("its machine is lost")
        self.said += 1
        return next(self.stream, None)

    def close(self, gracefully: bool) -> None:
        self.closed.append(gracefully)

    def _describe(self) -> Iterator[Message]:
        yield {"target": self.target, "versions": self.versions, "pid": 1}

    def _measure(
        self, key: str, bundle: Any, traces: Sequence[str], incumbent: float
    ) -> Iterator[Message]:
        for number, trace in enumerate(traces):
            if self.problem:
                yield {"problem": self.problem}
                return
            is_time = trace.replace(".", "").isdigit()
            times = [float(trace)] if is_time else []
            yield {"number": number, "times": times, "failure": "" if is_time else trace}

    def _head_to_head(self, key: str, bundle: Any, *traces: str | None) -> Iterator[Message]:
        yield self._comparison()

    def _compare(self, bundle: Any, *names: str) -> Iterator[Message]:
        yield self._comparison()

    def _comparison(self) -> Message:
        times = ((1.0,), (2.0,))
        return {
            "number": 0, "ratio": 0.5, "chance": 0.0, "significant": True,
            "failure": "", "times": times,
        }  # fmt: skip


class FakeCluster:
    def __init__(self, *connections: FakeConnection) -> None:
        self.connections = connections

    def start(self, build: Any, settings: Any) -> Sequence[FakeConnection]:
        return self.connections

    def wait(self, connections: Sequence[Any], seconds: float) -> Sequence[FakeConnection]:
        """One at a time, those that said least first."""
        speaking = [connection for connection in connections if not connection.silent]
        return sorted(speaking, key=lambda connection: connection.said)[:1]
