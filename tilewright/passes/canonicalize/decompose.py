"""Operators that are defined by simpler operators are replaced by them.

%y = swish(%x)            →        %y.v = sigmoid(%x)
                                   %y = mul(%x, %y.v)
"""

from __future__ import annotations

from functools import cache

from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.registry import get_op, op_table
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_until_stable


def decompose(graph: Graph, context: PassContext) -> Graph:
    """Replace operators that are defined by simpler ones, until none is left."""
    return rewrite_until_stable(graph, _expand, of=_composite())


@cache
def _composite() -> frozenset[str]:
    return frozenset(name for name, row in op_table().items() if row.decompose is not None)


def _expand(g: Rewriter, n: Node) -> str | tuple[str, ...] | None:
    if n.regions:
        return None
    expand = get_op(n.op).decompose
    if expand is None:
        return None
    found: str | tuple[str, ...] = expand(g, n.attrs, n.inputs)
    return found
