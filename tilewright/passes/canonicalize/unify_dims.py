"""Unify dimensions that a graph's checks make equal.

    graph @f(x: f32[N], y: f32[M]) {          graph @f(x: f32[N], y: f32[N]) {
      check N == M, "..."              →        %0: f32[N] = add(%x, %y)
      %0: f32[N] = add(%x, %y)

Two symbolic dimensions of inputs that must be equal become one, and one that must be a number
becomes that number: the caller is then told which input is wrong. Other equalities rewrite types
and attributes, see `ops.shape.dim_equalities`, and stay as checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.expr import Binary, Const, Expr, Var
from tilewright.arith.walk import free_vars
from tilewright.ir.graph.nodes import Check, Graph, Node, Value
from tilewright.ops.shape.data_dependent import data_dependent_dims
from tilewright.ops.shape.dim_equalities import DimEqualities
from tilewright.passes.canonicalize.infer_types import infer_types, substitute_sizes
from tilewright.passes.context import PassContext


def unify_dims(graph: Graph, context: PassContext) -> Graph:
    """Spell sizes that the checks make equal in one way."""
    return equate_dims(graph)


def equate_dims(graph: Graph) -> Graph:
    """The same for whoever has no machine in mind yet."""
    return _respelt(_renamed(graph))


def _renamed(graph: Graph) -> Graph:
    """Inputs whose named sizes must be equal, or a number, say so in their types."""
    values: dict[str, Expr] = {}
    symbols = list(graph.symbols()) if graph.checks else []
    for check in graph.checks:
        pair = _named(check.condition, symbols)
        if pair is not None:
            values[pair[0]] = pair[1]
            symbols.remove(pair[0])
    return substitute_sizes(graph, values) if values else graph


def _named(condition: Expr, symbols: Sequence[str]) -> tuple[str, Expr] | None:
    """A name and what it stands for: a number, or the name that an earlier input has."""
    if not isinstance(condition, Binary) or not _is_equation(condition):
        return None
    sides = condition.a, condition.b
    names = [e for e in sides if isinstance(e, Var) and e.name in symbols]
    numbers = [e for e in sides if isinstance(e, Const)]
    if len(names) + len(numbers) < 2:
        return None
    first, *_, last = sorted(names, key=lambda v: symbols.index(v.name)) * 2
    return (last.name, numbers[0]) if numbers else (last.name, first)


def _is_equation(condition: Expr) -> bool:
    return isinstance(condition, Binary) and condition.op == "eq"


def _respelt(graph: Graph) -> Graph:
    result = _respelt_graph(graph, (), ())
    return graph if result is graph else infer_types(result)


def _respelt_graph(
    graph: Graph, outer: tuple[Check, ...], inputs: tuple[Value, ...], own: bool = True
) -> Graph:
    """A graph in the spelling of its checks and those around it, which a branch takes over.

    Without `own`, what its own checks say is not put to use.
    """
    checks = tuple({c.condition: c for c in (*outer, *graph.checks)}.values())
    equal = DimEqualities(checks if own else outer)
    equations = tuple(c for c in checks if _is_equation(c.condition))
    unknown = {name for n in graph.nodes for name in data_dependent_dims(n)}
    nodes = []
    for n in graph.nodes:
        nodes.append(_respelt_node(n, equal, _known(equations, unknown) if n.regions else ()))
        unknown -= {*data_dependent_dims(n)}
    inside = tuple(replace(v, type=equal.of(v.type)) for v in inputs)
    same = all(a is b for a, b in zip(nodes, graph.nodes, strict=True))
    if same and checks == graph.checks and inside == inputs:
        return graph
    return replace(graph, nodes=tuple(nodes), checks=checks, inputs=inside or graph.inputs)


def _known(checks: tuple[Check, ...], unknown: set[str]) -> tuple[Check, ...]:
    """The checks that can be made where some sizes are not known yet."""
    return tuple(c for c in checks if unknown.isdisjoint(free_vars(c.condition)))


def _respelt_node(n: Node, equal: DimEqualities, checks: tuple[Check, ...]) -> Node:
    attrs, types = equal.of(n.attrs), equal.before(data_dependent_dims(n)).of(n.types)
    regions = tuple(_respelt_region(n, r, checks) for r in n.regions)
    same = all(a is b for a, b in zip(regions, n.regions, strict=True))
    if attrs == n.attrs and types == n.types and same:
        return n
    return replace(n, attrs=attrs, types=types, regions=regions)


def _respelt_region(n: Node, region: Graph, checks: tuple[Check, ...]) -> Graph:
    """A nested graph respelt; the results of a branch stay as the other branch spells them."""
    result = _respelt_graph(region, checks, region.inputs)
    equal = DimEqualities(checks)
    outside = [equal.of(region.types[o]) for o in region.outputs]
    if n.op != "if" or [result.types[o] for o in result.outputs] == outside:
        return result
    return _respelt_graph(region, checks, region.inputs, own=False)
