"""What a call of a graph gives that need not be computed, and what it writes to its arguments.

AOTAutograd's forward graph returns what the backward graph wants beside the results of the user:
parameters and inputs among it, which are returned as they are. Where a graph ends in `copy_` of a
value to one of its arguments, the value becomes a result that is copied after the run.

    def forward(p, g):                       def forward(p, g):
        d = aten.mul(g, -0.1)                    d = aten.mul(g, -0.1)
        q = aten.add(p, d)            ->         q = aten.add(p, d)
        aten.copy_(p, q)                         return (q,)
        return (p,)                          arguments (0,), written (0,)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node


@dataclass(frozen=True)
class Results:
    """A graph that computes what has to be, and what its caller makes of that."""

    graph: GraphModule
    arguments: tuple[int | None, ...]
    """For each result of the graph as it was: the argument that it is, `None` if computed."""
    written: tuple[int, ...]
    """Arguments to which the last computed results are copied."""

    @classmethod
    def of(cls, module: GraphModule) -> Results:
        """Those of a graph of ATen operators."""
        graph = Graph()
        given = graph.graph_copy(module.graph, {})
        output = graph.output(tuple(given) if isinstance(given, list | tuple) else (given,))
        output.meta = dict(next(iter(module.graph.find_nodes(op="output"))).meta)
        places = {node: i for i, node in enumerate(graph.find_nodes(op="placeholder"))}
        targets = _copied(graph, places)
        items: Any = output.args[0]
        arguments = tuple(places.get(v) if isinstance(v, Node) else None for v in items)
        computed = [v for v, i in zip(items, arguments, strict=True) if i is None]
        output.args = ((*computed, *targets.values()),)
        written = tuple(places[node] for node in targets)
        return cls(GraphModule(module, graph), arguments, written)

    @cached_property
    def is_all_computed(self) -> bool:
        """Whether nothing is handed on or written to."""
        return not self.written and all(i is None for i in self.arguments)

    def kept(self, args: Sequence[Any]) -> dict[int, Any]:
        """The arguments of a call that `joined` needs."""
        wanted = {*self.written, *(i for i in self.arguments if i is not None)}
        return {i: args[i] for i in wanted}

    def joined(self, kept: Mapping[int, Any], computed: Sequence[Any]) -> list[Any]:
        """All results of a call, after values are copied to the arguments that are written to."""
        count = len(computed) - len(self.written)
        for place, value in zip(self.written, computed[count:], strict=True):
            kept[place].copy_(value)
        own = iter(computed[:count])
        return [next(own) if i is None else kept[i] for i in self.arguments]


def _copied(graph: Graph, places: Mapping[Node, int]) -> dict[Node, Any]:
    """The value that each argument has in the end; the nodes that copy them are taken out."""
    found: dict[Node, Any] = {}
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        target, value = node.args[:2]
        if target in places:
            found[target] = value
            node.replace_all_uses_with(value)
            graph.erase_node(node)
    return found
