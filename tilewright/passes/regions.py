"""Nested graphs of control flow: visit, substitute inputs and dimensions, inline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from tilewright.arith.expr import Expr
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import substitute
from tilewright.ir.graph.dims import map_exprs
from tilewright.ir.graph.nodes import Constant, Graph, Node
from tilewright.ops.control.conditional import is_control
from tilewright.ops.graph_builder import GraphBuilder


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


def is_read(region: Graph, name: str) -> bool:
    """Whether a nested graph needs one of its inputs."""
    return name in region.output_set or name in region.consumers


def with_inputs(
    g: GraphBuilder, region: Graph, given: Sequence[str], kept: Collection[int]
) -> Graph:
    """A nested graph that takes only some of its inputs; the others are constants, or not read."""
    constants = []
    for position, value in enumerate(region.inputs):
        data = g.constant_data(given[position])
        if position not in kept and data is not None and is_read(region, value.name):
            constants.append(Constant(value.name, g.type(given[position]), data))
    return replace(
        region,
        inputs=tuple(region.inputs[i] for i in kept),
        constants=(*region.constants, *constants),
    )


def with_sizes(graph: Graph, values: Mapping[str, Expr]) -> Graph:
    """A graph and its nested ones with sizes replaced, in types, attributes and checks."""

    def bind(e: Expr) -> Expr:
        return simplify(substitute(e, values))

    nodes = (
        replace(
            n,
            types=map_exprs(n.types, bind),
            attrs=map_exprs(n.attrs, bind),
            regions=tuple(with_sizes(r, values) for r in n.regions),
        )
        for n in graph.nodes
    )
    return replace(
        graph,
        inputs=tuple(replace(v, type=map_exprs(v.type, bind)) for v in graph.inputs),
        nodes=tuple(nodes),
        checks=tuple(replace(c, condition=bind(c.condition)) for c in graph.checks),
    )
