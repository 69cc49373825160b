"""Data-dependent dimensions: which node defines each, and which checks its value allows."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.arith.walk import free_vars
from tilewright.ir.graph.nodes import Check, Graph, Node
from tilewright.ops.control.bind_dim import BindDimAttrs
from tilewright.ops.control.conditional import IfAttrs
from tilewright.ops.control.loop import LoopAttrs


def data_dependent_dims(n: Node) -> tuple[str, ...]:
    """The names of sizes that are known once a node has run."""
    if isinstance(n.attrs, BindDimAttrs):
        return (n.attrs.name,)
    if isinstance(n.attrs, LoopAttrs):
        return (n.attrs.trip_count_dim,) if n.attrs.trip_count_dim else ()
    return tuple(filter(None, n.attrs.dynamic_dims)) if isinstance(n.attrs, IfAttrs) else ()


def checks_by_node(graph: Graph) -> Iterator[list[Check]]:
    """The checks that can be made before the nodes run, then those that each node allows."""
    unknown = {name for n in graph.nodes for name in data_dependent_dims(n)}
    pending = [c for c in graph.checks if not unknown.isdisjoint(free_vars(c.condition))]
    yield [c for c in graph.checks if c not in pending]
    for n in graph.nodes:
        unknown -= {*data_dependent_dims(n)}
        ready = [c for c in pending if unknown.isdisjoint(free_vars(c.condition))]
        pending = [c for c in pending if c not in ready]
        yield ready
