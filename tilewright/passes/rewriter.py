"""The mechanism that passes share: rebuild a graph node by node, replacing what a rule replaces.

    def drop_identity(g: Rewriter, n: Node) -> str | None:
        return n.inputs[0] if n.op == "identity" else None

    rewrite_graph(graph, drop_identity)

A rule sees each node once, in order, with its inputs already rewritten. It adds nodes to `g` and
returns the value (or one value for each output) that replaces the node, or `None` to keep it. Added
nodes are named after the node, and a result takes over the node's own name. Nodes without readers
stay: `dce` removes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.arith.expr import Expr
from tilewright.core.errors import Error, Loc
from tilewright.ir.graph.nodes import Attrs, Graph, Node
from tilewright.ir.types import TensorType, Type
from tilewright.ops.graph_builder import GraphBuilder, constant_as_exprs
from tilewright.ops.registry import get_op
from tilewright.ops.shape.data_dependent import data_dependent_dims
from tilewright.ops.shape.dim_equalities import DimEqualities
from tilewright.passes.rewrite_log import record

Rule = Callable[["Rewriter", Node], "str | tuple[str, ...] | None"]


def rewrite_graph(graph: Graph, rule: Rule, of: Collection[str] = ()) -> Graph:
    """The graph with every node replaced by what `rule` says; the same object if by nothing.

    A rule that needs certain operators names them in `of`: without them there is nothing to do.
    """
    if of and graph.ops.isdisjoint(of):
        return graph
    g = Rewriter(graph)
    for n in graph.nodes:
        g.visit(n, rule)
    return g.result()


def rewrite_until_stable(graph: Graph, rule: Rule, of: Collection[str] = ()) -> Graph:
    """`rewrite_graph` again and again, until the rule replaces nothing."""
    while (result := rewrite_graph(graph, rule, of)) is not graph:
        graph = result
    return graph


def renamed_inputs(n: Node, names: Mapping[str, str]) -> Node:
    """`n` reading `names[v]` for each `v`; the same object where that changes nothing."""
    if not any(i in names for i in n.inputs):
        return n
    return n.rewired(tuple(names.get(i, i) for i in n.inputs), n.outputs)


class Rewriter(GraphBuilder):
    """A builder that starts with a graph's inputs and constants, and takes over its nodes.

    Most passes change little or nothing. What is known of the values is that of the old graph, all
    its values included, until something is added; only then are tables of its own made.
    """

    def __init__(self, source: Graph) -> None:
        super().__init__(source.name, source.loc)
        self.source = source
        self.changed = False
        # Names of the rules that were applied to the node being visited, where they have names.
        self.applied: list[str] = []
        self._names: dict[str, str] = {}
        self._scope = ""
        self._reserved: Iterable[str] = ()
        self.checks = {c.condition: c for c in source.checks}
        self.equalities = DimEqualities(source.checks)
        self.inputs = list(source.inputs)
        self.constants = list(source.constants)
        self._reserved = source.types.keys()
        self._owns_tables = False
        self.types = source.types
        self._producer = source.producer
        self._uses = source.use_counts

    def _own_tables(self) -> None:
        """Begin to differ from the old graph."""
        if not self._owns_tables:
            self._owns_tables = True
            self.types = dict(self.types)
            self._producer = dict(self._producer)
            self._uses = Counter(self._uses)

    def constant_data(self, name: str) -> np.ndarray | None:
        """The data of a value that is a constant, else `None`."""
        found = self._data.get(name)
        if found is None and (c := self.source.constant_by_name.get(name)) is not None:
            return c.data
        return found

    def symbolic_value(self, name: str) -> np.ndarray | None:
        """An integer or bool tensor as an object array of expressions, if it is known.

        It is worked out when somebody asks, from the first value on that is not worked out yet.
        """
        pending = [name]
        while pending:
            value = pending[-1]
            n = None if value in self._known else self._producer.get(value)
            missing = [] if n is None or n.regions else self._unknown_inputs(n)
            pending += missing
            if not missing:
                if value not in self._known:
                    self._known[value] = self._worked_out(value, n)
                pending.pop()
        return self._known[name]

    def _unknown_inputs(self, n: Node) -> list[str]:
        """The inputs to work out before a node: of none that is no integer anyway."""
        if not self.may_propagate(n.op, n.types[0]):
            return []
        return [i for i in n.inputs if i and i not in self._known]

    def _worked_out(self, value: str, n: Node | None) -> np.ndarray | None:
        if n is not None:
            first = value == n.name and not n.regions
            return self.propagated_value(n.op, n.attrs, n.inputs, n.types[0]) if first else None
        data = self.constant_data(value)
        return None if data is None else constant_as_exprs(data)

    def _track(self, n: Node) -> None:
        """Nothing: symbolic values are computed on demand."""

    def producer(self, name: str) -> Node | None:
        """The node of the new graph that defines a value; inputs and constants have none."""
        return self._producer.get(name)

    def add_many(
        self,
        op: str,
        *inputs: str,
        attrs: Attrs | None = None,
        names: Sequence[str] = (),
        loc: Loc | None = None,
    ) -> tuple[str, ...]:
        """Append a node and return the names of all its outputs; "" is an absent input."""
        outputs = super().add_many(op, *inputs, attrs=attrs, names=names, loc=loc)
        self._producer.update((o, self.nodes[-1]) for o in outputs)
        return outputs

    def add_check(self, condition: Expr, message: str, loc: Loc | None = None) -> bool:
        """What a rewritten node assumes follows from what the original one did."""
        return True

    def use_count(self, name: str) -> int:
        """How often the old graph read what is now `name`, being an output included."""
        return self._uses[name]

    def visit(self, n: Node, rule: Rule) -> None:
        """Append a node of the old graph, or what `rule` puts in its place."""
        if self._names:
            n = renamed_inputs(n, self._names)
        nodes, constants = len(self.nodes), len(self.constants)
        self.loc, self._scope = n.loc, n.name
        found = rule(self, n)
        self.loc, self._scope = self.source.loc, ""
        if found is None:
            self.keep(n)
            return
        self.changed = True
        self._own_tables()
        results = found if isinstance(found, tuple) else (found,)
        self._check(n, results)
        results = self._adopt(results, n.outputs, nodes, constants)
        record(n.outputs, results, ", ".join(self.applied))
        self.applied.clear()
        self._names.update((o, r) for o, r in zip(n.outputs, results, strict=True) if o != r)
        for old, new in zip(n.outputs, results, strict=True):
            if old != new:  # else it has the uses of the old one already
                self._uses[new] += self.source.use_counts[old]

    def keep(self, n: Node, infer: bool = False) -> None:
        """Append a node as it is; its types are inferred anew if those of its inputs changed."""
        if not self._owns_tables and not infer:
            self.nodes.append(n)
            return
        self._own_tables()
        if (infer or self._moved(n)) and n.op != "fused":
            retyped = self._retyped(n) if n.regions else n
            types = self._infer(retyped)
            if retyped is not n or types != n.types:
                self.changed = True
                n = replace(retyped, types=types)
        self.nodes.append(n)
        for name, t in zip(n.outputs, n.types, strict=True):
            self.types[name] = t
            self._producer[name] = n

    def _retyped(self, n: Node) -> Node:
        """A node of control flow whose branches are inferred anew from its operands' types."""
        regions = []
        for region in n.regions:
            pairs = zip(region.inputs, n.inputs[1:], strict=True)
            equal = DimEqualities(region.checks)
            inputs = tuple(replace(v, type=equal.of(self.types[i])) for v, i in pairs)
            inner = Rewriter(replace(region, inputs=inputs))
            for m in region.nodes:
                inner.keep(m, infer=True)
            regions.append(inner.result())
        return replace(n, regions=tuple(regions))

    def _moved(self, n: Node) -> bool:
        """Whether an input has another type than it had in the old graph."""
        before = self.source.types
        for i in n.inputs:
            if i:
                new, old = self.types[i], before.get(i)
                if new is not old and new != old:  # mostly the same object: comparing is slow
                    return True
        return False

    def result(self) -> Graph:
        """The new graph, or the old one where nothing was replaced."""
        if not self.changed:
            return self.source
        return self.graph(*(self._names.get(o, o) for o in self.source.outputs))

    def _infer(self, n: Node) -> tuple[Type, ...]:
        try:
            row, ins = get_op(n.op), [self.types[i] if i else None for i in n.inputs]
            rule = row.region_types
            found = row.infer(n.attrs, ins) if rule is None else rule(n.attrs, ins, n.regions)
        except Error as error:
            raise error.at(n.loc) from None
        equal = self.equalities.before(data_dependent_dims(n))
        return equal.of(found if isinstance(found, tuple) else (found,))

    def _check(self, n: Node, results: tuple[str, ...]) -> None:
        """A rule may not change what a value is; shapes may be spelt differently."""
        assert len(results) == len(n.outputs), f"{n.op}: {len(results)} results"
        for name, old in zip(results, n.types, strict=True):
            new = self.types[name]
            if isinstance(old, TensorType) and isinstance(new, TensorType):
                same = (old.dtype, old.rank) == (new.dtype, new.rank)
                assert same, f"{n.op} {n.name}: {old} became {new}"

    def _adopt(
        self, results: tuple[str, ...], wanted: tuple[str, ...], nodes: int, constants: int
    ) -> tuple[str, ...]:
        """Give results among the nodes and constants added since then the names they replace."""
        created = {o for n in self.nodes[nodes:] for o in n.outputs}
        created |= {c.name for c in self.constants[constants:]}
        names = {new: old for new, old in zip(results, wanted, strict=True) if new in created}
        if not names:
            return results
        self.nodes[nodes:] = [_renamed(n, names) for n in self.nodes[nodes:]]
        self.constants[constants:] = [
            replace(c, name=names.get(c.name, c.name)) for c in self.constants[constants:]
        ]
        tables: tuple[dict[str, Any], ...] = (self.types, self._known, self._data)
        for table in tables:
            table.update((old, table.pop(new)) for new, old in names.items() if new in table)
        self._producer.update((o, n) for n in self.nodes[nodes:] for o in n.outputs)
        return tuple(names.get(r, r) for r in results)

    def _define(self, name: str, type: Type) -> str:
        base = f"{self._scope}.{name}" if self._scope else name
        candidate, count = base, 0
        while candidate in self.types or candidate in self._reserved:
            count += 1
            candidate = f"{base}_{count}"
        self._own_tables()
        self.types[candidate] = type
        return candidate


def _renamed(n: Node, names: Mapping[str, str]) -> Node:
    inputs = tuple(names.get(i, i) for i in n.inputs)
    return n.rewired(inputs, tuple(names.get(o, o) for o in n.outputs))
