"""A cluster without processes: workers that answer as they are told to, and go when they are told.

A trace is its own answer: `0.5` takes so many seconds, any other word is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.target.host import host
from tilewright.tune.measure.cluster.transport import Gone
from tilewright.tune.measure.cluster.worker import Message
from tilewright.tune.target_key import target_text, versions

HERE = target_text(host())


@dataclass(eq=False)
class FakeLink:
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
            raise Gone("its machine is gone")
        self.said += 1
        return next(self.stream, None)

    def close(self, kindly: bool) -> None:
        self.closed.append(kindly)

    def _declare(self) -> Iterator[Message]:
        yield {"target": self.target, "versions": self.versions, "pid": 1}

    def _measure(
        self, key: str, parcel: Any, traces: Sequence[str], incumbent: float
    ) -> Iterator[Message]:
        for number, trace in enumerate(traces):
            if self.problem:
                yield {"problem": self.problem}
                return
            is_time = trace.replace(".", "").isdigit()
            times = [float(trace)] if is_time else []
            yield {"number": number, "times": times, "failure": "" if is_time else trace}

    def _head_to_head(self, key: str, parcel: Any, *traces: str | None) -> Iterator[Message]:
        yield self._comparison()

    def _compare(self, parcel: Any, *names: str) -> Iterator[Message]:
        yield self._comparison()

    def _comparison(self) -> Message:
        times = ((1.0,), (2.0,))
        return {
            "number": 0, "ratio": 0.5, "chance": 0.0, "significant": True,
            "failure": "", "times": times,
        }  # fmt: skip


class FakeCluster:
    def __init__(self, *links: FakeLink) -> None:
        self.links = links

    def start(self, build: Any, settings: Any) -> Sequence[FakeLink]:
        return self.links

    def wait(self, links: Sequence[Any], seconds: float) -> Sequence[FakeLink]:
        """One at a time, those that said least first."""
        speaking = [link for link in links if not link.silent]
        return sorted(speaking, key=lambda link: link.said)[:1]
