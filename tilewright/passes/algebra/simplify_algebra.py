"""Algebraic simplification: formulas become the operators they spell, constants are combined.

    %1 = sigmoid(%0)                       %2 = swish(%0) {alpha=1.0}
    %2 = mul(%0, %1)              →

The rules are in `rules.py`. The replacement of a node is tried again at once, so that one walk over
the graph leaves nothing to simplify. TW_TRACE_RULES=1 prints each rewrite.
"""

from __future__ import annotations

import sys
from functools import cache

from tilewright.core.config import config
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType
from tilewright.passes.algebra.patterns import GraphRule
from tilewright.passes.algebra.rules import RULES
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph


def simplify_algebra(graph: Graph, context: PassContext) -> Graph:
    """Apply the algebraic rules until none fits."""
    return rewrite_graph(graph, _simplified)


@cache
def _rules_by_op() -> dict[str, tuple[GraphRule, ...]]:
    ops = {op for rule in RULES for op in rule.ops}
    return {op: tuple(r for r in RULES if op in r.ops) for op in ops}


def _simplified(g: Rewriter, n: Node) -> str | None:
    found = _applied(g, n)
    result = found
    while found is not None:
        result, producer = found, g.producer(found)
        # Only what the rule has added: nodes further up are simplified already.
        found = _applied(g, producer) if producer is not None and producer is g.nodes[-1] else None
    return result


def _applied(g: Rewriter, n: Node) -> str | None:
    """What the first rule that fits puts in the node's place."""
    rules = _rules_by_op().get(n.op, ())
    if not rules or len(n.types) != 1 or not isinstance(n.types[0], TensorType):
        return None
    for rule in rules:
        found = rule.apply(g, n)
        if found is not None:
            g.applied.append(rule.name)
            if config().trace_rules:
                print(f"{rule.name}: {n.op} {n.name}  -->  {found}", file=sys.stderr)
            return found
    return None
