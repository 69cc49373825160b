"""Dead code elimination: nodes and constants that no output depends on are removed.

%0 = relu(%x)                      %1 = exp(%x)
%1 = exp(%x)              →        return %1
return %1

A node stays while any of its outputs is used, or where it gives a size its value, which types may
mention. Inputs stay: they are how the model is called.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.shape.data_dependent import data_dependent_dims
from tilewright.passes.context import PassContext


def dce(graph: Graph, context: PassContext) -> Graph:
    """Remove nodes and constants that no output depends on."""
    used = set(graph.outputs)
    kept: list[Node] = []
    for n in reversed(graph.nodes):
        if data_dependent_dims(n) or not used.isdisjoint(n.outputs):
            kept.append(n)
            used.update(n.inputs)
    constants = tuple(c for c in graph.constants if c.name in used)
    if len(kept) == len(graph.nodes) and len(constants) == len(graph.constants):
        return graph
    return replace(graph, nodes=tuple(reversed(kept)), constants=constants)
