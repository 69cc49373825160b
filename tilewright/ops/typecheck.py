"""The type checker of graphs: every node's types are inferred again and compared."""

from __future__ import annotations

from tilewright.core.errors import Error, VerifyError
from tilewright.ir.graph.nodes import Check, Graph, Node
from tilewright.ops.registry import get_op
from tilewright.ops.shape.data_dependent import data_dependent_dims
from tilewright.ops.shape.dim_equalities import DimEqualities


def check_types(graph: Graph) -> None:
    """Raise VerifyError at the first node whose operator, attributes or types are wrong."""
    _check_graph(graph, graph.checks)


def _check_graph(graph: Graph, checks: tuple[Check, ...]) -> None:
    equal = DimEqualities(checks)
    for n in graph.nodes:
        for region in n.regions:
            _check_graph(region, (*checks, *region.checks))
        if n.op == "fused":
            _check_fused(n)
        else:
            _check_node(graph, n, equal)


def _check_node(graph: Graph, n: Node, equal: DimEqualities) -> None:
    row = get_op(n.op)
    if not isinstance(n.attrs, row.attrs):
        _fail(n, f"has {type(n.attrs).__name__}, its operator takes {row.attrs.__name__}")
    ins = [graph.types[i] if i else None for i in n.inputs]
    try:
        rule = row.region_types
        found = row.infer(n.attrs, ins) if rule is None else rule(n.attrs, ins, n.regions)
    except Error as error:
        raise error.at(n.loc) from None
    types = found if isinstance(found, tuple) else (found,)
    equal = equal.before(data_dependent_dims(n))
    if types != n.types and equal.of(types) != equal.of(n.types):
        _fail(n, f"is of type {_listed(n.types)}, its operator gives {_listed(types)}")


def _check_fused(n: Node) -> None:
    (body,) = n.regions
    types = tuple(body.types[o] for o in body.outputs)
    if types != n.types:
        _fail(n, f"is of type {_listed(n.types)}, its body gives {_listed(types)}")


def _listed(types: tuple[object, ...]) -> str:
    return ", ".join(map(str, types))


def _fail(n: Node, message: str) -> None:
    raise VerifyError("graph.inferred", f"node {n.op} {n.name!r} {message}", loc=n.loc)
