"""Infer all types again from the inputs, and bind symbolic dimensions to values.

bind_dims(graph, {"N": 1})      graph @f(x: f32[N, 64])    →    graph @f(x: f32[1, 64])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

from tilewright.arith.expr import FALSE, TRUE, Expr, const
from tilewright.core.errors import ConfigError, TypeCheckError
from tilewright.ir.graph.nodes import Graph
from tilewright.passes.canonicalize.simplify_conditionals import take_known_branches
from tilewright.passes.regions import with_sizes
from tilewright.passes.rewriter import Rewriter


def infer_types(graph: Graph) -> Graph:
    """Infer every type anew from those of the inputs."""
    g = Rewriter(graph)
    for n in graph.nodes:
        g.keep(n, infer=True)
    return g.result()


def bind_dims(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with symbolic sizes replaced by numbers, in types and in attributes."""
    symbols = graph.symbols()
    for name, size in sizes.items():
        if name not in symbols:
            near = get_close_matches(name, symbols) or symbols
            message = f"no input of {graph.name!r} has a size named {name!r}"
            raise ConfigError("dims.unknown", message, help=f"one of {', '.join(near) or 'none'}")
        if size < 0:
            raise ConfigError("dims.negative", f"size {name!r} cannot be {size}")
    values = {name: const(size) for name, size in sizes.items()}
    return substitute_sizes(graph, values) if values else graph


def substitute_sizes(graph: Graph, values: Mapping[str, Expr]) -> Graph:
    """The graph with symbolic sizes replaced by numbers or others; a failing check is an error."""
    bound = with_sizes(graph, values)
    for check in bound.checks:
        if check.condition is FALSE:
            given = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise TypeCheckError("dims.check", f"{check.message}, with {given}", loc=check.loc)
    kept = tuple(c for c in bound.checks if c.condition is not TRUE)
    # A branch that is never taken need not make sense.
    return infer_types(take_known_branches(replace(bound, checks=kept)))
