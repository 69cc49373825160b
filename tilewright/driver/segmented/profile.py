"""The time of a segmented model: of its segments, and of the operators on the host.

with Clock() as clock:
    program.run(values)              # measures what it does with `timed`
clock.times                          # nanoseconds by what was run, in order of the first time
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from statistics import median
from typing import Any

_CLOCK: ContextVar[Clock | None] = ContextVar("clock", default=None)


@dataclass
class Clock:
    """Times by what was run; what an operator on the host runs itself counts for that alone."""

    times: dict[Any, list[int]] = field(default_factory=dict)
    _inner: list[int] = field(default_factory=list)
    _token: Token[Clock | None] | None = None

    def __enter__(self) -> Clock:
        self._token = _CLOCK.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _CLOCK.reset(self._token)

    @contextmanager
    def measure(self, what: Any) -> Iterator[None]:
        """Count the time inside for `what`, less that which is counted for something else."""
        self.times.setdefault(what, [])
        self._inner.append(0)
        start = time.perf_counter_ns()
        try:
            yield
        finally:
            spent = time.perf_counter_ns() - start
            self.times[what].append(spent - self._inner.pop())
            if self._inner:
                self._inner[-1] += spent


@contextmanager
def timed(what: Any) -> Iterator[None]:
    """Tell the clock that runs, if one does, what is run inside."""
    clock = _CLOCK.get()
    if clock is None:
        yield
    else:
        with clock.measure(what):
            yield


@dataclass(frozen=True)
class Part:
    """A segment or an operator on the host: how often a run has it, and its time in each run."""

    name: str
    calls: int
    ns: tuple[int, ...]


@dataclass(frozen=True)
class SegmentProfile:
    """The times of a model in segments."""

    parts: tuple[Part, ...]

    def data(self) -> dict[str, Any]:
        """All of it for a program to read."""
        total = sum(min(p.ns) for p in self.parts) or 1
        rows = [
            {
                "name": p.name,
                "calls": p.calls,
                "min_ms": min(p.ns) / 1e6,
                "median_ms": median(p.ns) / 1e6,
                "share": min(p.ns) / total,
            }
            for p in self.parts
        ]
        return {"parts": rows}

    def __str__(self) -> str:
        wide = max((len(p.name) for p in self.parts), default=4)
        lines = [f"{'part':{wide}}  calls     min ms  median ms  share"]
        for row in self.data()["parts"]:
            lines.append(
                f"{row['name']:{wide}}  {row['calls']:5}  {row['min_ms']:9.4f}"
                f"  {row['median_ms']:9.4f}  {row['share']:5.1%}"
            )
        return "\n".join(lines)


def segment_profile(clocks: Sequence[Clock], names: Mapping[Any, str]) -> SegmentProfile:
    """The profile of several runs on the same inputs; `names` are those of what was run."""
    parts = []
    for what in clocks[0].times:
        each = [clock.times.get(what, [0]) for clock in clocks]
        parts.append(Part(names[what], len(each[0]), tuple(map(sum, each))))
    return SegmentProfile(tuple(parts))
