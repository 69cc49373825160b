"""Copy aliased outputs: every output of the model is written by a kernel of its own.

graph @f(x) {                      graph @f(x) {
  %0 = reshape(%x)                   %0 = reshape(%x)
  return %0, %x           →          %1 = identity(%0)
}                                    %2 = identity(%x)
                                     return %1, %2
                                   }

The caller gives a buffer for each output. An input, a constant, another output, or a view of one of
these cannot be computed in that buffer, so it is copied.

So is a view of a value that may have more elements than the output: a loop writes its rows before
their number is known and checked against the output.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType
from tilewright.ops.registry import op_table
from tilewright.ops.shape.data_dependent import data_dependent_dims
from tilewright.passes.context import PassContext


def copy_aliased_outputs(graph: Graph, context: PassContext) -> Graph:
    """Copy each output that has no kernel of its own to write it."""
    dynamic = {size for n in graph.nodes for size in data_dependent_dims(n)}
    taken = {v.name for v in graph.inputs} | {c.name for c in graph.constants}
    outputs: list[str] = []
    copies: list[Node] = []
    for name in graph.outputs:
        root = _root(graph, name)
        if root in taken or _may_be_larger(graph, root, name, dynamic):
            copy = _fresh(graph, name, len(outputs))
            copies.append(Node("identity", (name,), (copy,), (graph.types[name],), loc=graph.loc))
            name = copy
        else:
            taken.add(root)
        outputs.append(name)
    if not copies:
        return graph
    return replace(graph, nodes=(*graph.nodes, *copies), outputs=tuple(outputs))


def _root(graph: Graph, name: str) -> str:
    """The value whose bytes `name` is a view of."""
    while (n := graph.producer.get(name)) and _is_view(n):
        name = n.inputs[0]
    return name


def _may_be_larger(graph: Graph, root: str, view: str, dynamic: set[str]) -> bool:
    """Whether a value may have more elements than a view of it, by a data-dependent dimension."""
    sizes = (graph.types[name] for name in (root, view))
    whole, seen = (t.elements for t in sizes if isinstance(t, TensorType))
    return not dynamic.isdisjoint(free_vars(simplify(whole - seen)))


def _is_view(n: Node) -> bool:
    row = op_table().get(n.op)
    return row is not None and row.kind == "view"


def _fresh(graph: Graph, name: str, number: int) -> str:
    """A name for the copy that becomes output `number`."""
    candidate = f"{name}.out{number}"
    while candidate in graph.types:
        candidate += "_"
    return candidate
