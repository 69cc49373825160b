"""How many operators of a model are compiled, and how many run on the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto

from tilewright.frontends.onnx.model.read import DOMAINS
from tilewright.frontends.onnx.segments.host.table import host_ops
from tilewright.frontends.onnx.table import converters


@dataclass(frozen=True)
class OperatorCounts:
    """All operators of a model, those in nested graphs included, and those on the host by type."""

    total: int
    host: dict[str, int]

    def data(self) -> dict[str, Any]:
        """All of it for a program to read."""
        return {"operators": self.total, "host_operators": dict(self.host)}

    def __str__(self) -> str:
        count = sum(self.host.values())
        kinds = ", ".join(f"{name} x{n}" for name, n in self.host.items())
        return f"{self.total} operators, {count} on the host{f': {kinds}' if kinds else ''}"


def operator_counts(nodes: Iterable[NodeProto]) -> OperatorCounts:
    """Count operators; one that the host has only for texts counts as compiled."""
    keys = Counter(operators(nodes))
    opaque = host_ops().keys() - converters().keys()
    host = {key: n for key, n in sorted(keys.items()) if key in opaque}
    return OperatorCounts(keys.total(), host)


def operators(nodes: Iterable[NodeProto]) -> list[str]:
    """The operators of nodes by name, those in nested graphs included."""
    return list(map(_key, _all_nodes(nodes)))


def _key(node: NodeProto) -> str:
    return node.op_type if node.domain in DOMAINS else f"{node.domain}::{node.op_type}"


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _all_nodes(graph.node)
