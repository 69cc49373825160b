"""Reverse-mode differentiation: one sweep over a graph's nodes, the last one first.

    %y = exp(%x)              gradients(g, nodes, {"x"}, "y")["x"] is %v:
    ...                       %d = full() {value=1}      the gradient of %y
                              %v = mul(%d, %y)           by the vjp of exp

Each node hands the gradients of its results on to its operands: by the `vjp` of its operator's row;
else as the `parts` that the row says it is made of, which are added and differentiated in its
place; nested graphs by `conditional` and `loop`. Gradients of a value that several nodes read are
added up. The nodes that compute the gradients are added to the graph of the values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tilewright.arith.expr import const
from tilewright.core.errors import UnsupportedError
from tilewright.ir.graph.nodes import Node
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.op import GraphOps, Op
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.registry import get_op, op_table
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.traced_value import TracedValue, Value

# The gradient of each value by name; those without one have no entry.
Gradients = dict[str, Value]
# What is added to the gradients of a node's operands, `None` where nothing is.
Pulled = Sequence[Value | None]


def gradients(g: GraphOps, nodes: Sequence[Node], xs: Collection[str], y: str) -> dict[str, str]:
    """The gradient of the sum of `y` for each value between `xs` and `y` that it depends on.

    `nodes` lead from `xs` to `y`, see `nodes_between`; a value that is not in the result has the
    gradient 0.
    """
    one = TracedValue(g, full_like(g, y, 1.0))
    return {name: dx.name for name, dx in pullback(g, nodes, xs, {y: one}).items()}


def pullback(
    g: GraphOps, nodes: Sequence[Node], xs: Collection[str], given: Mapping[str, Value]
) -> Gradients:
    """The gradients of values between `xs` and those of which the gradients are given."""
    found: Gradients = dict(given)
    inner = {*xs, *(out for node in nodes for out in node.outputs)}
    for node in reversed(nodes):
        dys = [found.get(out) for out in node.outputs]
        if all(dy is None for dy in dys):
            continue
        wanted = [name in inner and _is_smooth(g, name, node) for name in node.inputs]
        if not any(wanted):
            continue
        for name, wants, dx in zip(node.inputs, wanted, _pulled(g, node, dys, wanted), strict=True):
            if wants and dx is not None:
                _add(found, g, name, dx)
    return found


def _add(found: Gradients, g: GraphOps, name: str, dx: Value) -> None:
    x: Value = TracedValue(g, name)
    dx = _unbroadcast(dx.cast(x.dtype), x)
    found[name] = found[name] + dx if name in found else dx


def _is_smooth(g: GraphOps, name: str, node: Node) -> bool:
    """Whether a value may have a gradient: integers and truth values have none."""
    dtype = g.type(name).dtype
    if dtype.kind == "complex":
        raise UnsupportedError(
            "autodiff.complex",
            f"the gradient of {node.op} by {name!r} of complex numbers",
            loc=node.loc,
            help="use real numbers, pairs of which are complex ones",
        )
    return dtype.is_float


def _pulled(g: GraphOps, node: Node, dys: Sequence[Value | None], wanted: Sequence[bool]) -> Pulled:
    if node.regions:
        return _pulled_control(g, node, dys, wanted)
    row = get_op(node.op)
    if row.no_gradient:
        raise _refused(node, row.no_gradient)
    ins = [TracedValue(g, name) if name else None for name in node.inputs]
    if row.vjp is None:
        return _pulled_by_parts(g, node, row, dys, wanted)
    ys = tuple(TracedValue(g, name) for name in node.outputs)
    try:
        if len(ys) == 1:
            return row.vjp(node.attrs, ins, ys[0], dys[0])
        return row.vjp(node.attrs, ins, ys, tuple(dys))
    except UnsupportedError as error:
        raise error.at(node.loc) from None


def _pulled_control(
    g: GraphOps, node: Node, dys: Sequence[Value | None], wanted: Sequence[bool]
) -> Pulled:
    raise _refused(node, "it has nested graphs")


def _pulled_by_parts(
    g: GraphOps, node: Node, row: Op, dys: Sequence[Value | None], wanted: Sequence[bool]
) -> Pulled:
    """The gradients of the operators that another one is the same as."""
    if row.parts is None:
        raise _refused(node, "no rule says what it is")
    inner = GraphBuilder(node.op, node.loc)
    names = [inner.input(f"x{i}", g.type(x)) if x else "" for i, x in enumerate(node.inputs)]
    result = row.parts(inner, node.attrs, names)
    outputs = result if isinstance(result, tuple) else (result,)
    given = {name: x for name, x in zip(names, node.inputs, strict=True) if name}
    nodes, known = _inlined(g, inner, given)
    seeds: Gradients = {}
    for out, dy in zip(outputs, dys, strict=True):
        if dy is not None:
            name = known[out]
            seeds[name] = seeds[name] + dy if name in seeds else dy
    xs = [x for x, wants in zip(node.inputs, wanted, strict=True) if wants]
    return _each_once(node, pullback(g, nodes, xs, seeds))


def _each_once(node: Node, found: Gradients) -> Pulled:
    """The gradient of each operand; one that is given twice has it at the first place."""
    pulled: list[Value | None] = []
    for position, name in enumerate(node.inputs):
        first = node.inputs.index(name) == position
        pulled.append(found.get(name) if name and first else None)
    return pulled


def _inlined(
    g: GraphOps, inner: GraphBuilder, given: Mapping[str, str]
) -> tuple[list[Node], dict[str, str]]:
    """The nodes of a graph added to another one, and what its values are called there."""
    names = {"": "", **given}
    names.update((c.name, g.constant(c.data, c.name)) for c in inner.constants)
    nodes = []
    for n in inner.nodes:
        inputs = tuple(names[i] for i in n.inputs)
        if n.regions:
            outputs = g.add_control(n.op, inputs, n.regions, n.attrs, n.outputs, n.loc)
        else:
            outputs = g.add_many(n.op, *inputs, attrs=n.attrs, names=n.outputs, loc=n.loc)
        names.update(zip(n.outputs, outputs, strict=True))
        nodes.append(Node(n.op, inputs, outputs, n.types, n.attrs, n.regions, n.loc))
    return nodes, names


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
    """The operators that have a gradient."""
    return sorted(name for name, op in op_table().items() if not op.no_gradient)


def _refused(node: Node, reason: str) -> UnsupportedError:
    return UnsupportedError(
        "autodiff.op",
        f"the gradient of {node.op}: {reason}",
        loc=node.loc,
        help="docs/howto/gradients.md says which operators have none",
    )


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
