"""How many operators of a model are compiled, and how many run on the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx import NodeProto

from tilewright.arith.expr import Var, const
from tilewright.core.errors import Error
from tilewright.frontends.onnx.context import identifier
from tilewright.frontends.onnx.segments.declared_types import ValuePort
from tilewright.frontends.onnx.segments.host.table import host_ops
from tilewright.frontends.onnx.segments.partition import (
    Given,
    NonTensor,
    OnnxRemainingGraph,
)
from tilewright.frontends.onnx.segments.pending_node import HostNodeKey, operator_key
from tilewright.frontends.onnx.table import converters
from tilewright.ir.types import TensorType


@dataclass(frozen=True)
class OperatorCounts:
    """All operators of a model, those in nested graphs included, and the nodes on the host."""

    total: int
    host_nodes: frozenset[HostNodeKey]

    @property
    def host(self) -> dict[str, int]:
        """How many nodes of each operator run on the host."""
        return dict(sorted(Counter(op for op, _ in self.host_nodes).items()))

    def with_host_nodes(self, nodes: Iterable[HostNodeKey]) -> OperatorCounts:
        """The counts with further nodes that turned out to run on the host."""
        return replace(self, host_nodes=self.host_nodes | frozenset(nodes))

    def data(self) -> dict[str, Any]:
        """All of it for a program to read."""
        return {"operators": self.total, "host_operators": self.host}

    def __str__(self) -> str:
        kinds = ", ".join(f"{name} x{n}" for name, n in self.host.items())
        count = len(self.host_nodes)
        return f"{self.total} operators, {count} on the host{f': {kinds}' if kinds else ''}"


def operator_counts(remaining: OnnxRemainingGraph, inputs: Sequence[ValuePort]) -> OperatorCounts:
    """Count the operators of a model that has not run.

    A loop behind a value that is not known yet counts as compiled unless something in it must run
    on the host; what a run then finds out is for `with_host_nodes`.
    """
    nodes = list(_all_nodes(p.proto for p in remaining.nodes))
    found = {_key(node) for node in nodes if _is_always_on_host(node)}
    return OperatorCounts(len(nodes), frozenset(found | _found_by_import(remaining, inputs)))


def operators(nodes: Iterable[NodeProto]) -> list[str]:
    """The operators of nodes by name, those in nested graphs included."""
    return [operator_key(node) for node in _all_nodes(nodes)]


def _key(node: NodeProto) -> HostNodeKey:
    return operator_key(node), tuple(filter(None, node.output))


def _is_always_on_host(node: NodeProto) -> bool:
    """Whether no loop program can express an operator, or something in the body of a loop."""
    op = operator_key(node)
    if op not in host_ops():
        return False
    return op not in converters() or any(map(_is_always_on_host, _nested(node)))


def _found_by_import(
    remaining: OnnxRemainingGraph, inputs: Sequence[ValuePort]
) -> set[HostNodeKey]:
    """What the front end gives to the host of a model whose inputs are as they are declared."""
    given = _given(inputs)
    if given is None:
        return set()
    try:
        return {p.key for p in remaining.segment(given).hosts}
    except Error:
        # Some models fit together only at the sizes of a run, which tells the rest.
        return set()


def _given(inputs: Sequence[ValuePort]) -> Mapping[str, Given] | None:
    """The declared types; `None` if one has no rank."""
    found: dict[str, Given] = {}
    for port in inputs:
        if port.dtype is None:
            found[port.name] = NonTensor()
        elif port.shape is None:
            return None
        else:
            sizes = (Var(identifier(d)) if isinstance(d, str) else const(d) for d in port.shape)
            found[port.name] = TensorType(port.dtype, tuple(sizes))
    return found


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        yield from _nested(node)


def _nested(node: NodeProto) -> Iterator[NodeProto]:
    """The nodes of the graphs inside a node."""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from _all_nodes(graph.node)
