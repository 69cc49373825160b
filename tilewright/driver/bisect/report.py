"""What a bisection finds, as data and as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.graph.nodes import Node

# What may be wrong, and what its name is.
KINDS = {
    "pass": "a pass over the graph",
    "fusion": "a group of nodes that became one kernel",
    "lowering": "a kernel's loops, before any schedule",
    "schedule": "a step of a kernel's schedule",
    "finalize": "a step from scheduled loops to plain ones",
    "code": "the machine code of a kernel whose loops are right",
    "kernel": "a kernel that is wrong in the model, and right alone",
    "memory": "the place of a value in memory, overwritten too early",
    "rounding": "no single step: differences that add up",
}


@dataclass(frozen=True)
class Finding:
    """The first step that changes a result: its kind, its name, and the node it happened in.

    `error` is the difference of the value that `node` names, relative to its largest magnitude.
    """

    kind: str
    name: str
    node: str
    error: float
    op: str = ""
    model_nodes: tuple[str, ...] = ()
    details: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Every kind is described."""
        assert self.kind in KINDS, self.kind

    def data(self) -> dict[str, Any]:
        """All of it for a program to read."""
        return {
            "kind": self.kind,
            "name": self.name,
            "node": self.node,
            "op": self.op,
            "model_nodes": list(self.model_nodes),
            "error": self.error,
            "details": dict(self.details),
        }

    def text(self) -> str:
        """A few lines for people."""
        lines = [f"{self.kind} {self.name}: {KINDS[self.kind]}"]
        what = f"{self.op} {self.node}".strip()
        if what:
            lines.append(f"  node         {what}")
        if self.model_nodes:
            lines.append(f"  in the model {', '.join(self.model_nodes)}")
        lines.append(f"  difference   {self.error:.3g} of the largest magnitude")
        lines += [f"  {key:12} {value}" for key, value in self.details.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class BisectReport:
    """A bisection: how far each output is off, the finding if there is one, and what it took."""

    errors: dict[str, float]
    tolerance: float
    finding: Finding | None
    compilations: int
    notes: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """All of it for a program to read."""
        return {
            "outputs": dict(self.errors),
            "tolerance": self.tolerance,
            "finding": None if self.finding is None else self.finding.data(),
            "compilations": self.compilations,
            "notes": list(self.notes),
        }

    def text(self) -> str:
        """All of it for people."""
        lines = [f"output {name}: differs by {error:.3g}" for name, error in self.errors.items()]
        found = "nothing changes a result" if self.finding is None else self.finding.text()
        lines += ["", found, *(f"  note         {note}" for note in self.notes)]
        count = f"{self.compilations} compilation{'' if self.compilations == 1 else 's'}"
        return "\n".join([*lines, "", f"tolerance {self.tolerance:g}, {count}"])


def model_nodes(nodes: Iterable[Node]) -> tuple[str, ...]:
    """The nodes of the model that these came from, groups opened."""
    flat = (m for n in nodes for m in (n.regions[0].nodes if n.op == "fused" else (n,)))
    return tuple(dict.fromkeys(m.loc.node for m in flat if m.loc.node))


def group_text(n: Node) -> str:
    """A node's operators: those of a group in order."""
    return "+".join(m.op for m in n.regions[0].nodes) if n.op == "fused" else n.op
