"""The graph before the first pass and after each that changed it, equal nodes stored once.

A node is a row of one table, so that the difference of two graphs is that of two lists of numbers.
A fused kernel is a group of the operators that it computes, under the names that they had before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.graph.nodes import Attrs, Graph, Node
from tilewright.ir.graph.text import print_attrs
from tilewright.ir.types import Type

# Operator, results, operands that are no constants, type of the first result, attributes, the
# model's own name for it, types of constant operands.
Row = tuple[str, tuple[str, ...], tuple[str, ...], str, str, str, tuple[str, ...]]
_Key = tuple[str, tuple[str, ...], tuple[Type, ...], Attrs]


@dataclass
class GraphStages:
    """The table of rows, and graphs as lists of their numbers."""

    steps: Mapping[str, int]  # kernel calls by their first result
    rows: dict[Row, int] = field(default_factory=dict)
    graphs: list[dict[str, Any]] = field(default_factory=list)

    def add(self, graph: Graph, before: Graph | None = None, final: bool = False) -> int:
        """Add a graph; the number of it. `before` is the one that a pass made it of.

        In the `final` graph operators that are kernels by themselves are groups, too.
        """
        found = _Flattened(before, self.steps if final else ())
        found.add(graph)
        self.graphs.append(
            {
                "inputs": [v.name for v in graph.inputs],
                "outputs": list(graph.outputs),
                "nodes": [self.rows.setdefault(row, len(self.rows)) for row in found.rows],
                "groups": [
                    {"name": name, "step": self.steps.get(name, -1), "nodes": list(members)}
                    for name, members in found.groups.items()
                ],
            }
        )
        return len(self.graphs) - 1

    def data(self) -> dict[str, Any]:
        """`nodes`: the rows; `graphs`: of each the numbers of its rows, and its groups."""
        rows = [[list(x) if isinstance(x, tuple) else x for x in row] for row in self.rows]
        return {"nodes": rows, "graphs": self.graphs}


class _Flattened:
    """The operators of a graph, those of fused kernels and of control flow in groups."""

    def __init__(self, before: Graph | None, kernels: Container[str]) -> None:
        self.rows: list[Row] = []
        self._kernels = kernels
        # By the name of the node that has a region: the positions of what is in it.
        self.groups: dict[str, range] = {}
        self._before: defaultdict[_Key, list[Node]] = defaultdict(list)
        for n in before.nodes if before is not None else ():
            assert before is not None
            self._before[_key(n, [_spelled(i, before) for i in n.inputs])].append(n)

    def add(self, graph: Graph) -> None:
        """Add the nodes of a graph."""
        for n in graph.nodes:
            names = {i: i for i in (*n.inputs, *n.outputs)}
            start = len(self.rows)
            if n.op == "fused":
                self._fused(n, graph)
            else:
                self._row(n, names, graph)
                for region in n.regions:
                    self.add(region)
            if n.regions or n.name in self._kernels:
                self.groups[n.name] = range(start, len(self.rows))

    def _fused(self, n: Node, graph: Graph) -> None:
        region = n.regions[0]
        names = dict(zip((v.name for v in region.inputs), n.inputs, strict=True))
        names.update(zip(region.outputs, n.outputs, strict=True))
        for m in region.nodes:
            inputs = [_spelled(names[i], graph) if i in names else "" for i in m.inputs]
            known = self._before[_key(m, inputs)]
            own = [k for k in known if not {names.get(o) for o in m.outputs}.isdisjoint(k.outputs)]
            old = next(iter(own or known), None)
            if old is not None:
                known.remove(old)
            for i, o in enumerate(m.outputs):
                names.setdefault(o, f"{n.name}/{o}" if old is None else old.outputs[i])
            self._row(m, names, graph)

    def _row(self, n: Node, names: Mapping[str, str], graph: Graph) -> None:
        known = [names[i] for i in n.inputs if names.get(i)]
        weights = [i for i in known if i in graph.constant_by_name and _spelled(i, graph)]
        self.rows.append(
            (
                n.op,
                tuple(names[o] for o in n.outputs),
                tuple(i for i in known if i not in graph.constant_by_name),
                str(n.types[0]) if n.types else "",
                print_attrs(n.attrs),
                n.loc.node or "",
                tuple(str(graph.types[i]) for i in weights),
            )
        )


def _spelled(name: str, graph: Graph) -> str:
    """A value as it is called inside and outside of groups; numbers are spelled out in groups."""
    constant = graph.constant_by_name.get(name)
    return "" if constant is not None and constant.data.size == 1 else name


def _key(n: Node, inputs: Sequence[str]) -> _Key:
    return n.op, tuple(inputs), n.types, n.attrs
