"""Simplify conditionals: known conditions, constants inside branches, unused operands.

    %y = if(%true, %x) {A} {B}      →      A's nodes

An `if` with a constant condition is replaced by the nodes of its branch. Constant operands are
copied into the branches, so that they can be folded there, and operands that no branch reads are
removed.
"""

from __future__ import annotations

from tilewright.arith.expr import Const
from tilewright.arith.simplify import simplify
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.control.conditional import IfAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.regions import inline_region, is_read, with_inputs
from tilewright.passes.rewriter import Rewriter, rewrite_until_stable


def simplify_conditionals(graph: Graph, context: PassContext) -> Graph:
    """Keep one branch where the condition is known, and give branches their constants."""
    return take_known_branches(graph)


def take_known_branches(graph: Graph) -> Graph:
    """The same for whoever has no machine in mind yet."""
    return rewrite_until_stable(graph, _rule, of=("if",))


def _rule(g: Rewriter, n: Node) -> tuple[str, ...] | None:
    if not isinstance(n.attrs, IfAttrs):
        return None
    taken = _decided(g, n, n.attrs)
    if taken is not None and not n.attrs.dynamic_dims:
        return inline_region(g, n.regions[0 if taken else 1], n.inputs[1:])
    return _captures(g, n)


def _decided(g: Rewriter, n: Node, attrs: IfAttrs) -> bool | None:
    if attrs.condition is not None:
        condition = simplify(attrs.condition)
        return bool(condition.value) if isinstance(condition, Const) else None
    data = g.constant_data(n.inputs[0])
    return None if data is None else bool(data.reshape(-1)[0])


def _captures(g: Rewriter, n: Node) -> tuple[str, ...] | None:
    """The node without operands that are constants, or that no branch reads."""
    kept = []
    for position, name in enumerate(n.inputs[1:]):
        inner = [region.inputs[position].name for region in n.regions]
        read = any(is_read(r, i) for r, i in zip(n.regions, inner, strict=True))
        if read and g.constant_data(name) is None:
            kept.append(position)
    if len(kept) == len(n.inputs) - 1:
        return None
    regions = tuple(with_inputs(g, r, n.inputs[1:], kept) for r in n.regions)
    inputs = [n.inputs[0], *(n.inputs[1 + i] for i in kept)]
    return g.add_control("if", inputs, regions, n.attrs, n.outputs, n.loc)
