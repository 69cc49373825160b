"""The mechanism that passes share: rebuild a graph node by node, replacing what a rule replaces.

    def drop_identity(g: Rewriter, n: Node) -> str | None:
        return n.inputs[0] if n.op == "identity" else None

    rewrite_graph(graph, drop_identity)

A rule sees each node once, in order, with its inputs already rewritten. It gives the value (or the
values, one an output) that stand in the node's place, adding nodes to `g` as it likes, or `None` to
keep the node. What is added is named after the node, and a result takes over the node's own name.
Nodes that nobody reads any more stay behind: `eliminate_dead` removes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.arith.expr import Expr
from tilewright.core.errors import Error, Loc
from tilewright.ir.graph.nodes import Attrs, Graph, Node
from tilewright.ir.types import TensorType, Type
from tilewright.ops.build import GraphBuilder
from tilewright.ops.equalities import Equalities
from tilewright.ops.table import op_row
from tilewright.passes.rewrites import record

Rule = Callable[["Rewriter", Node], "str | tuple[str, ...] | None"]


def rewrite_graph(graph: Graph, rule: Rule, of: Collection[str] = ()) -> Graph:
    """The graph with every node replaced by what `rule` says; the same object if by nothing.

    A rule that needs certain operators names them in `of`: without them there is nothing to do.
    """
    if of and not any(n.op in of for n in graph.nodes):
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
    return replace(n, inputs=tuple(names.get(i, i) for i in n.inputs))


class Rewriter(GraphBuilder):
    """A builder that starts with a graph's inputs and constants, and takes over its nodes."""

    def __init__(self, source: Graph) -> None:
        super().__init__(source.name, source.loc)
        self.source = source
        self.changed = False
        # Names of the rules that were applied to the node being visited, where they have names.
        self.applied: list[str] = []
        self._names: dict[str, str] = {}
        self._scope = ""
        self._reserved: Iterable[str] = ()
        self._producer: dict[str, Node] = {}
        self._source_uses = Counter(i for n in source.nodes for i in n.inputs)
        self._source_uses.update(source.outputs)
        self._uses: Counter[str] = Counter()
        self.checks = {c.condition: c for c in source.checks}
        self.equalities = Equalities(source.checks)
        for v in source.inputs:
            self.input(v.name, v.type)
            self._uses[v.name] = self._source_uses[v.name]
        for c in source.constants:
            self.take_constant(c)
            self._uses[c.name] = self._source_uses[c.name]
        self._reserved = source.types.keys()

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

    def require(self, condition: Expr, message: str, loc: Loc | None = None) -> bool:
        """What a rewritten node assumes follows from what the original one did."""
        return True

    def use_count(self, name: str) -> int:
        """How often the old graph read what is now `name`, being an output included."""
        return self._uses[name]

    def visit(self, n: Node, rule: Rule) -> None:
        """Append a node of the old graph, or what `rule` puts in its place."""
        n = renamed_inputs(n, self._names)
        nodes, constants = len(self.nodes), len(self.constants)
        self.loc, self._scope = n.loc, n.name
        found = rule(self, n)
        self.loc, self._scope = self.source.loc, ""
        if found is None:
            self.keep(n)
            return
        self.changed = True
        results = found if isinstance(found, tuple) else (found,)
        self._check(n, results)
        results = self._adopt(results, n.outputs, nodes, constants)
        record(n.outputs, results, ", ".join(self.applied))
        self.applied.clear()
        self._names.update((o, r) for o, r in zip(n.outputs, results, strict=True) if o != r)
        for old, new in zip(n.outputs, results, strict=True):
            self._uses[new] += self._source_uses[old]

    def keep(self, n: Node, infer: bool = False) -> None:
        """Append a node as it is; its types are inferred anew if those of its inputs changed."""
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
            self._uses[name] = self._source_uses[name]
        if not n.regions:
            self._track(n)

    def _retyped(self, n: Node) -> Node:
        """A node of control flow whose branches are inferred anew from its operands' types."""
        regions = []
        for region in n.regions:
            pairs = zip(region.inputs, n.inputs[1:], strict=True)
            equal = Equalities(region.checks)
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
            row, ins = op_row(n.op), [self.types[i] if i else None for i in n.inputs]
            rule = row.region_types
            found = row.infer(n.attrs, ins) if rule is None else rule(n.attrs, ins, n.regions)
        except Error as error:
            raise error.at(n.loc) from None
        return self.equalities.of(found if isinstance(found, tuple) else (found,))

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
        self.types[candidate] = type
        return candidate


def _renamed(n: Node, names: Mapping[str, str]) -> Node:
    return replace(
        n,
        inputs=tuple(names.get(i, i) for i in n.inputs),
        outputs=tuple(names.get(o, o) for o in n.outputs),
    )
