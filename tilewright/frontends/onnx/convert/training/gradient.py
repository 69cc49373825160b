"""Gradient: how a value changes with others, by reverse-mode differentiation of the graph.

The nodes from `xs` to `y` are those that are in the graph already. Where the node gives other
values for `xs` than those, they are added once more with the values it gives.
"""

from __future__ import annotations

from tilewright.autodiff.backward import full_like, gradients, nodes_between
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.node_scope import NodeScope
from tilewright.ir.graph.nodes import Node

DOMAIN = "ai.onnx.preview.training"


def gradient(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The gradient of `y` for each of `xs`, at the values that the node gives."""
    given = (*n.strs_attr("xs"), *n.strs_attr("zs", ()))
    y = n.str_attr("y")
    missing = [name for name in (*given, y) if name not in c.values]
    if missing or len(given) != len(n.inputs):
        what = f"{missing[0]!r} is not computed before it" if missing else "xs and zs do not fit"
        raise n.invalid(what)
    if not c.whole:
        raise n.unsupported(
            "it stands in a model that is compiled in segments", "make all shapes known"
        )
    names = {c.values[name]: n.required(i) for i, name in enumerate(given)}
    wanted = [n.required(i) for i in range(len(n.strs_attr("xs")))]
    nodes = _at_given_values(c, n, names, c.values[y])
    y = nodes[-1].outputs[0] if nodes else names.get(c.values[y], c.values[y])
    scope = NodeScope(c, n)
    try:
        found = gradients(scope, nodes, set(wanted), y)
    except UnsupportedError as error:
        raise n.unsupported(error.message, error.help) from error
    return tuple(found[x] if x in found else full_like(scope, x, 0.0) for x in wanted)


def _at_given_values(c: OnnxContext, n: OnnxNode, names: dict[str, str], y: str) -> list[Node]:
    """The nodes from the given values to `y`, added once more where these are others."""
    path = nodes_between(c.g.nodes, names, y)
    if all(old == new for old, new in names.items()):
        return path
    start = len(c.g.nodes)
    for node in path:
        inputs = [names.get(i, i) for i in node.inputs]
        outputs = c.g.add_many(node.op, *inputs, attrs=node.attrs, names=node.outputs, loc=n.loc)
        names.update(zip(node.outputs, outputs, strict=True))
    return c.g.nodes[start:]


CONVERTERS: dict[str, Converter] = {f"{DOMAIN}::Gradient": gradient}
