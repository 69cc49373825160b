"""Reverse-mode differentiation: one sweep over a graph's nodes, the last one first.

    %y = exp(%x)              gradients(g, nodes, {"x"}, "y")["x"] is %v:
    ...                       %d = full() {value=1}      the gradient of %y
                              %v = mul(%d, %y)           by the vjp of exp

Each node hands the gradient of its result on to its operands by the `vjp` of its operator's row.
Gradients of a value that several nodes read are added up. The nodes that compute the gradients are
added to the graph of the values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tilewright.arith.expr import const
from tilewright.core.errors import UnsupportedError
from tilewright.ir.graph.nodes import Node
from tilewright.ops.op import GraphOps
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.registry import get_op, op_table
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.traced_value import TracedValue, Value


def gradients(g: GraphOps, nodes: Sequence[Node], xs: Collection[str], y: str) -> dict[str, str]:
    """The gradient of the sum of `y` for each value between `xs` and `y` that it depends on.

    `nodes` lead from `xs` to `y`, see `nodes_between`; a value that is not in the result has the
    gradient 0.
    """
    found: dict[str, Value] = {y: TracedValue(g, full_like(g, y, 1.0))}
    inner = {*xs, *(out for node in nodes for out in node.outputs)}
    for node in reversed(nodes):
        if node.name not in found:
            continue
        ins: list[Value] = [TracedValue(g, name) for name in node.inputs]
        for x, dx in zip(ins, _vjp(g, node, ins, found[node.name]), strict=True):
            if dx is not None and x.name in inner:
                dx = _unbroadcast(dx, x)
                found[x.name] = found[x.name] + dx if x.name in found else dx
    return {name: value.name for name, value in found.items()}


def nodes_between(nodes: Sequence[Node], xs: Collection[str], y: str) -> list[Node]:
    """The nodes that depend on `xs` and that `y` depends on, in order."""
    reached, sources = set(xs), set(xs)
    for node in nodes:
        if not reached.isdisjoint(node.inputs) and sources.isdisjoint(node.outputs):
            reached.update(node.outputs)
    needed, path = {y} - sources, []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs) and not reached.isdisjoint(node.outputs):
            needed.update(i for i in node.inputs if i in reached and i not in sources)
            path.append(node)
    return path[::-1]


def full_like(g: GraphOps, like: str, value: float) -> str:
    """One number in the shape and type of a value."""
    t = g.type(like)
    return g.add("full", attrs=FullAttrs(t.shape, value, t.dtype))


def differentiable() -> list[str]:
    """The operators that have a gradient rule."""
    return sorted(name for name, op in op_table().items() if op.vjp is not None)


def _vjp(g: GraphOps, node: Node, ins: Sequence[Value], dy: Value) -> Sequence[Value | None]:
    rule = None if node.op == "fused" or node.regions else get_op(node.op).vjp
    if rule is None or len(node.outputs) > 1:
        raise UnsupportedError(
            "autodiff.op",
            f"the gradient of {node.op}",
            loc=node.loc,
            help=f"supported: {', '.join(differentiable())}",
        )
    return rule(node.attrs, ins, TracedValue(g, node.name), dy)


def _unbroadcast(dx: Value, x: Value) -> Value:
    """A gradient summed over the dimensions along which its operand was broadcast."""
    shape, wide = x.shape, dx.shape
    if shape == wide:
        return dx
    front = len(wide) - len(shape)
    repeated = [i for i, d in enumerate(shape, front) if d is const(1) and wide[i] is not d]
    axes = (*range(front), *repeated)
    if axes:
        dx = dx.apply("reduce_sum", attrs=ReduceAttrs(axes, keepdims=True))
    return dx.reshape(shape)
