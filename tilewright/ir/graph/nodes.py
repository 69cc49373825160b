"""Graph nodes: values are referred to by name, each defined once, definitions before uses.

graph @block(x: f32[N, 64], w: f32[64, 8] = const) {
  %0: f32[N, 8] = matmul(%x, %w)
  %1: f32[N, 8] = relu(%0)
  return %1
}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tilewright.arith.expr import Expr
from tilewright.arith.walk import free_vars
from tilewright.core.errors import NOWHERE, Loc
from tilewright.core.node import node
from tilewright.ir.types import TensorType, Type


@node
class Attrs:
    """Base of every operator's attributes; an operator without attributes uses it as it is."""


NO_ATTRS = Attrs()


@node
class FusedAttrs(Attrs):
    """Of a group of nodes that one kernel computes: the kind of the operator that schedules it."""

    kind: str


@node
class Value:
    """A graph input: a name and its type."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A tensor known at compile time; `data` may be any NumPy view, it is never written to."""

    name: str
    type: TensorType
    data: np.ndarray


@node
class Node:
    """`outputs = op(inputs) {attrs}`; an absent optional input is the empty name.

    `types` are those of the outputs. `regions` are the nested graphs of control flow.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    types: tuple[Type, ...]
    attrs: Attrs = NO_ATTRS
    regions: tuple[Graph, ...] = ()
    loc: Loc = NOWHERE

    @property
    def name(self) -> str:
        """The name of the first output, which identifies the node."""
        return self.outputs[0]

    def rewired(self, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Node:
        """The node between other values; `dataclasses.replace` takes several times as long."""
        return Node(self.op, inputs, outputs, self.types, self.attrs, self.regions, self.loc)

    @property
    def type(self) -> TensorType:
        """The type of the first output, which must be a tensor."""
        first = self.types[0]
        assert isinstance(first, TensorType)
        return first


@node
class Check:
    """What the sizes of a run must fulfil for the graph to mean what its types say.

    Two sizes that cannot be proved equal, nor different, are taken to be equal under a check.
    """

    condition: Expr
    message: str
    loc: Loc = NOWHERE


@dataclass(frozen=True, eq=False)
class Graph:
    """Inputs, constants and nodes in topological order; compared by identity.

    `checks` hold whenever the graph runs; those of a nested graph, whenever it is entered.
    """

    name: str
    inputs: tuple[Value, ...]
    constants: tuple[Constant, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    loc: Loc = field(default=NOWHERE)
    checks: tuple[Check, ...] = ()

    @cached_property
    def types(self) -> dict[str, Type]:
        """The type of every value."""
        found: dict[str, Type] = {v.name: v.type for v in self.inputs}
        found.update((c.name, c.type) for c in self.constants)
        for n in self.nodes:
            found.update(zip(n.outputs, n.types, strict=True))
        return found

    @cached_property
    def constant_by_name(self) -> dict[str, Constant]:
        """The constants by name."""
        return {c.name: c for c in self.constants}

    @cached_property
    def producer(self) -> dict[str, Node]:
        """The node that defines each value; inputs and constants have none."""
        return {out: n for n in self.nodes for out in n.outputs}

    @cached_property
    def consumers(self) -> dict[str, tuple[Node, ...]]:
        """The nodes that read each value, each once, in order."""
        found: dict[str, dict[int, Node]] = {}
        for n in self.nodes:
            for name in n.inputs:
                found.setdefault(name, {})[id(n)] = n
        return {name: tuple(users.values()) for name, users in found.items()}

    @cached_property
    def use_counts(self) -> Counter[str]:
        """How often each value is read, being an output included."""
        counts = Counter(i for n in self.nodes for i in n.inputs)
        counts.update(self.outputs)
        return counts

    @cached_property
    def ops(self) -> frozenset[str]:
        """The operators of the nodes, for asking whether there are any of a kind."""
        return frozenset(n.op for n in self.nodes)

    @cached_property
    def has_regions(self) -> bool:
        """Whether any node has nested graphs."""
        return any(n.regions for n in self.nodes)

    @cached_property
    def output_set(self) -> frozenset[str]:
        """The names of the outputs, for asking whether a value is one."""
        return frozenset(self.outputs)

    def tensor_type(self, name: str) -> TensorType:
        """The type of a value that must be a tensor."""
        found = self.types[name]
        assert isinstance(found, TensorType), name
        return found

    def with_nodes(self, nodes: tuple[Node, ...]) -> Graph:
        """This graph with other nodes."""
        return replace(self, nodes=nodes)

    def symbols(self) -> tuple[str, ...]:
        """The names of symbolic sizes, in the order in which the inputs mention them."""
        ordered: dict[str, None] = {}
        for v in self.inputs:
            for dim in v.type.shape if isinstance(v.type, TensorType) else ():
                ordered.update(dict.fromkeys(sorted(free_vars(dim))))
        return tuple(ordered)

    def walk(self) -> Iterator[Node]:
        """All nodes, those of nested regions included."""
        for n in self.nodes:
            yield n
            for region in n.regions:
                yield from region.walk()
