"""One node of a model as a model of its own: to run, bisect or time it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.arith.expr import Var
from tilewright.core.dtypes import BOOL
from tilewright.ir.graph.nodes import Constant, Graph, Node, Value
from tilewright.ir.types import TensorType, Type


def extract_node(
    node: Node,
    arrays: Sequence[np.ndarray | None],
    types: Sequence[Type | None],
    sizes: Mapping[str, int],
    constants: frozenset[str],
) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph of just this node, and its inputs; those named in `constants` are constants of it.

    Each symbolic size is the length of an input that nothing reads.
    """
    given = {
        name: (x, t)
        for name, x, t in zip(node.inputs, arrays, types, strict=True)
        if name and x is not None
    }
    fixed, inputs, values = [], [], {}
    for name, (x, t) in given.items():
        assert isinstance(t, TensorType)
        if name in constants:
            fixed.append(Constant(name, t, x))
        else:
            inputs.append(Value(name, t))
            values[name] = np.asarray(x, order="C")
    for size, length in sizes.items():
        inputs.append(Value(f"size.{size}", TensorType(BOOL, (Var(size),))))
        values[f"size.{size}"] = np.zeros(length, bool)
    graph = Graph(node.op, tuple(inputs), tuple(fixed), (node,), node.outputs, node.loc)
    return graph, values
