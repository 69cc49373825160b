"""Reference values of graphs for one set of inputs: every node, by the interpreter.

Graphs before and after a pass share most of their nodes. A node that reads the same arrays as an
earlier one is not interpreted again, so that a whole pipeline costs little more than one graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.core.errors import Error, ExecutionError
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Type
from tilewright.ops.interpret import bind_dynamic_dims, bind_sizes, evaluate_node
from tilewright.ops.registry import get_op

# Operations up to which loops are interpreted: that takes seconds.
INTERPRETED = 4_000_000

Arrays = dict[str, np.ndarray]
Types = Sequence[Type | None]
# Runs a node as unscheduled machine code: the node, its inputs, their types, sizes.
RunUnscheduled = Callable[
    [Node, Sequence[np.ndarray | None], Types, Mapping[str, int]], list[np.ndarray]
]


class ReferenceValues:
    """The values of graphs that take the same inputs."""

    def __init__(self, inputs: Mapping[str, np.ndarray], run_unscheduled: RunUnscheduled) -> None:
        self.inputs = dict(inputs)
        self.run_unscheduled = run_unscheduled
        # Results by what was computed from what; the operands are kept so that ids stay theirs.
        self._known: dict[Any, tuple[Sequence[np.ndarray | None], list[np.ndarray]]] = {}

    def values(self, graph: Graph) -> Arrays:
        """The value of every name in the graph."""
        return self._values(graph, self.inputs, {})[0]

    def sizes(self, graph: Graph) -> dict[str, int]:
        """The symbolic sizes of the graph, those included that only a run gives."""
        return self._values(graph, self.inputs, {})[1]

    def outputs(self, graph: Graph) -> list[np.ndarray]:
        """The outputs in order."""
        values = self.values(graph)
        return [values[name] for name in graph.outputs]

    def node(
        self,
        node: Node,
        arrays: Sequence[np.ndarray | None],
        types: Types,
        sizes: Mapping[str, int],
    ) -> list[np.ndarray]:
        """The outputs of one node that reads these arrays."""
        if node.op == "fused":
            group = node.regions[0]
            given = zip(group.inputs, arrays, strict=True)
            inner = {v.name: x for v, x in given if x is not None}
            values = self._values(group, inner, sizes)[0]
            return [values[name] for name in group.outputs]
        if node.regions:
            return evaluate_node(node, arrays, sizes, types)
        key = (node.op, node.attrs, node.types, tuple(types), tuple(map(id, arrays)))
        if key not in self._known:
            self._known[key] = arrays, self._fresh(node, arrays, types, sizes)
        return self._known[key][1]

    def _fresh(
        self,
        node: Node,
        arrays: Sequence[np.ndarray | None],
        types: Types,
        sizes: Mapping[str, int],
    ) -> list[np.ndarray]:
        row = get_op(node.op)
        if row.loops is not None:
            if evaluate(row.cost(node.attrs, types, node.types), sizes) > INTERPRETED:
                return self.run_unscheduled(node, arrays, types, sizes)
        return evaluate_node(node, arrays, sizes, types)

    def _values(
        self, graph: Graph, inputs: Mapping[str, np.ndarray], sizes: Mapping[str, int]
    ) -> tuple[Arrays, dict[str, int]]:
        known = bind_sizes(graph, inputs, sizes)
        for check in graph.checks:
            if not evaluate(check.condition, known):
                raise ExecutionError("run.check", check.message, loc=check.loc)
        values: Arrays = {c.name: c.data for c in graph.constants}
        values.update((v.name, inputs[v.name]) for v in graph.inputs)
        for n in graph.nodes:
            arrays = [values[name] if name else None for name in n.inputs]
            types = [graph.types[name] if name else None for name in n.inputs]
            try:
                results = self.node(n, arrays, types, known)
            except Error as error:
                raise error.at(n.loc) from error.__cause__
            values.update(zip(n.outputs, results, strict=True))
            bind_dynamic_dims(n, results, known)
        return values, known
