"""What a pass is given beside the graph: the machine, the precision, and a log to report to.

A pass is a pure function `(graph, context) -> graph`. It asks the context for what it depends on,
returns the same graph object where it has nothing to do, and reports through the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.core.node import node
from tilewright.ir.graph.nodes import Graph
from tilewright.target.target import Target


@node
class WhyNotFused:
    """Why a producer and its consumer are not one kernel."""

    producer: str
    consumer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.producer} and {self.consumer}: {self.reason}"


@node
class PrecisionNote:
    """In which precision one product runs, and why."""

    name: str
    what: str
    precision: str
    reason: str

    def __str__(self) -> str:
        return f"{self.precision:5} {self.what}  {self.name}: {self.reason}"


@dataclass(frozen=True)
class PassRecord:
    """What one run of a pass did."""

    name: str
    seconds: float
    nodes_before: int
    nodes_after: int
    changed: bool


@dataclass
class PassLog:
    """What the passes of one compilation report, in order."""

    records: list[PassRecord] = field(default_factory=list)
    precision: list[PrecisionNote] = field(default_factory=list)
    not_fused: list[WhyNotFused] = field(default_factory=list)
    # The graph before the first pass and after each, for who gives a list; else they are not kept.
    graphs: list[Graph] | None = None

    def table(self) -> str:
        """One line a pass: time, node count before and after."""
        lines = []
        for r in self.records:
            change = f"{r.nodes_before} -> {r.nodes_after}" if r.changed else "(unchanged)"
            lines.append(f"{r.name:28} {r.seconds * 1e3:9.1f} ms   {change}")
        return "\n".join(lines)


@dataclass(frozen=True)
class PassContext:
    """The only other argument of a pass."""

    target: Target
    precision: str = "f32"
    log: PassLog = field(default_factory=PassLog)


Pass = Callable[[Graph, PassContext], Graph]
