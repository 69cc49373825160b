"""Nodes of a model that have not run yet, and what runs one on the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto

from tilewright.core.errors import Loc
from tilewright.frontends.onnx.context import OnnxNode
from tilewright.frontends.onnx.model.read import DOMAINS
from tilewright.frontends.onnx.model.toposort import node_name, reads
from tilewright.frontends.onnx.segments.host.call import HostOp, RunNested
from tilewright.frontends.onnx.segments.host.table import host_ops, of_values
from tilewright.frontends.onnx.segments.run_host_node import run_host_node

HostNodeKey = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class PendingNode:
    """A node that has not run yet, and the versions of the operators where it stands."""

    proto: NodeProto
    opsets: Mapping[str, int]
    loc: Loc
    reads: frozenset[str]

    @property
    def writes(self) -> tuple[str, ...]:
        """The values it defines."""
        return tuple(filter(None, self.proto.output))

    @property
    def op_type(self) -> str:
        """Its operator."""
        return self.proto.op_type

    @property
    def key(self) -> HostNodeKey:
        """Its operator as the tables have it, and the values it defines."""
        return node_key(self), self.writes

    def run(self, read: Callable[[str], Any], nested: RunNested) -> dict[str, Any]:
        """Its results by name, computed on the host; `nested` runs graphs inside it."""
        op, proto = host_op(self), self.proto
        assert op is not None, self.loc
        domain = "" if proto.domain in DOMAINS else proto.domain
        node = OnnxNode(proto, tuple(proto.input), self.loc, self.opsets.get(domain, 0))
        return run_host_node(op, node, [read(name) for name in proto.input], nested)


def pending_node(proto: NodeProto, opsets: Mapping[str, int], file: str) -> PendingNode:
    """A node as one that has not run yet."""
    return PendingNode(proto, opsets, Loc(file, node_name(proto)), frozenset(reads(proto)))


def host_op(p: PendingNode) -> HostOp | None:
    """What runs a node on the host, if something can."""
    key = node_key(p)
    return host_ops().get(key) or of_values().get(key)


def node_key(p: PendingNode) -> str:
    """Where the tables have the operator of a node."""
    return operator_key(p.proto)


def operator_key(proto: NodeProto) -> str:
    """Where the tables have the operator of a node that nothing else is known of."""
    return proto.op_type if proto.domain in DOMAINS else f"{proto.domain}::{proto.op_type}"
