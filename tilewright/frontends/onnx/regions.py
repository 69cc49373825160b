"""Nested graphs of ONNX as nested graphs of ours, which take what they read as operands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx import GraphProto

from tilewright.frontends.onnx.context import OnnxContext, identifier
from tilewright.frontends.onnx.model.toposort import free_values
from tilewright.ops.graph_builder import GraphBuilder


@dataclass(frozen=True)
class Captured:
    """The values of the graphs around that a nested graph reads, by their ONNX names."""

    names: tuple[str, ...]

    @classmethod
    def by(cls, c: OnnxContext, graphs: Iterable[GraphProto]) -> Captured:
        """What any of the graphs takes from where their node stands."""
        free = dict.fromkeys(name for graph in graphs for name in free_values(graph))
        return cls(tuple(name for name in free if name in c.values))

    def operands(self, c: OnnxContext) -> list[str]:
        """Those values that the node has as operands: constants are copied instead."""
        return [v for v in self._values(c) if v and c.constant_of(v) is None]

    def define(self, c: OnnxContext, g: GraphBuilder) -> dict[str, str]:
        """Make the values known in a nested graph: inputs of it, or constants."""
        pairs = zip(self.names, self._values(c), strict=True)
        return {name: g.capture(c.g, value) if value else "" for name, value in pairs}

    def _values(self, c: OnnxContext) -> list[str]:
        return [c.values[name] for name in self.names]


def region_builder(c: OnnxContext, name: str) -> GraphBuilder:
    """The builder of a nested graph, which knows of sizes what is known around it."""
    g = GraphBuilder(identifier(name or "nested"), c.g.loc)
    g.inherit(c.g)
    return g
