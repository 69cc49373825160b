"""Types inferred anew from the inputs, and symbolic sizes given values.

bind_dims(graph, {"N": 1})      graph @f(x: f32[N, 64])    →    graph @f(x: f32[1, 64])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import substitute
from tilewright.core.errors import ConfigError
from tilewright.ir.graph.exprs import map_exprs
from tilewright.ir.graph.nodes import Graph
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
    return infer_types(_bound(graph, values)) if values else graph


def _bound(graph: Graph, values: Mapping[str, Expr]) -> Graph:
    def bind(e: Expr) -> Expr:
        return simplify(substitute(e, values))

    nodes = (
        replace(
            n,
            types=map_exprs(n.types, bind),
            attrs=map_exprs(n.attrs, bind),
            regions=tuple(_bound(r, values) for r in n.regions),
        )
        for n in graph.nodes
    )
    return replace(
        graph,
        inputs=tuple(replace(v, type=map_exprs(v.type, bind)) for v in graph.inputs),
        nodes=tuple(nodes),
    )
