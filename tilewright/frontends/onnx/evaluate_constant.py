"""Evaluate values that depend on constants only, for nodes that need them at compile time.

Exporters leave arithmetic on constants in the model: `Range(CastLike(0.0, n), ...)`.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright.ir.graph.dims import symbols_of
from tilewright.ir.graph.nodes import Node
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import KNOWN_LIMIT, GraphBuilder
from tilewright.ops.interpret import evaluate_node


def computed(g: GraphBuilder, name: str) -> np.ndarray | None:
    """The data of a value, if it is small and depends on small constants only."""
    nodes = _ancestors(g, name)
    if nodes is None:
        return None
    arrays: dict[str, np.ndarray | None] = {"": None}
    for node in nodes:
        given = [arrays[i] if i in arrays else g.constant_data(i) for i in node.inputs]
        arrays.update(zip(node.outputs, evaluate_node(node, given, {}), strict=True))
    return arrays[name]


def _ancestors(g: GraphBuilder, name: str) -> list[Node] | None:
    """The nodes that compute a value, in order; `None` if they read more than constants."""
    producers = {out: node for node in g.nodes for out in node.outputs}
    found: dict[int, Node] = {}
    asked = [name]
    while asked:
        node = producers.get(asked.pop())
        if node is None or node.regions or symbols_of(node.attrs) or not _is_small(node):
            return None
        found[id(node)] = node
        given = [(i, g.constant_data(i)) for i in node.inputs if i]
        if any(data is not None and data.size > KNOWN_LIMIT for _, data in given):
            return None
        asked += (i for i, data in given if data is None)
    return [node for node in g.nodes if id(node) in found]


def _is_small(node: Node) -> bool:
    """Whether all results of a node are tensors of few elements."""
    shapes = [type.static_shape if isinstance(type, TensorType) else None for type in node.types]
    return all(shape is not None and prod(shape) <= KNOWN_LIMIT for shape in shapes)
