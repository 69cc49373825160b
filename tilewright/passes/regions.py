"""The nested graphs of control flow: visiting them, and putting one in its node's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.build import GraphBuilder
from tilewright.ops.control import is_control


def map_regions(graph: Graph, f: Callable[[Graph], Graph]) -> Graph:
    """The graph with `f` applied to each branch of its control flow; itself if nothing changed."""
    if not graph.has_regions:
        return graph
    nodes = tuple(_mapped(n, f) if is_control(n) else n for n in graph.nodes)
    same = all(a is b for a, b in zip(nodes, graph.nodes, strict=True))
    return graph if same else graph.with_nodes(nodes)


def _mapped(n: Node, f: Callable[[Graph], Graph]) -> Node:
    regions = tuple(map(f, n.regions))
    same = all(a is b for a, b in zip(regions, n.regions, strict=True))
    return n if same else replace(n, regions=regions)


def inline_region(g: GraphBuilder, region: Graph, given: Sequence[str]) -> tuple[str, ...]:
    """Add the nodes of a nested graph to `g`, reading `given`; the names of its results there."""
    names = {"": "", **{v.name: name for v, name in zip(region.inputs, given, strict=True)}}
    names.update((c.name, g.constant(c.data, c.name)) for c in region.constants)
    for check in region.checks:
        g.checks.setdefault(check.condition, check)
        g.equalities.add(check.condition)
    for n in region.nodes:
        inputs = [names[i] for i in n.inputs]
        if n.regions:
            outputs = g.add_control(n.op, inputs, n.regions, n.attrs, n.outputs, n.loc)
        else:
            outputs = g.add_many(n.op, *inputs, attrs=n.attrs, names=n.outputs, loc=n.loc)
        names.update(zip(n.outputs, outputs, strict=True))
    return tuple(names[o] for o in region.outputs)
