"""Inline the nodes of a function or a branch into the graph around it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, helper

from tilewright.frontends.onnx.functions import body_nodes


def branch_nodes(branch: GraphProto, call: NodeProto) -> list[NodeProto]:
    """The nodes of a branch, and what gives its results the names that the `If` gives them."""
    pairs = zip(branch.output, call.output, strict=False)
    named = [helper.make_node("Identity", [v.name], [out]) for v, out in pairs if out]
    return [*branch.node, *named]


def function_nodes(body: FunctionProto, call: NodeProto) -> list[NodeProto]:
    """The nodes of a function that a node calls; its own values get names that nothing else has."""
    names = dict(zip_longest(body.input, call.input[: len(body.input)], fillvalue=""))
    wanted = dict(zip(body.output, call.output, strict=False))
    prefix = next(filter(None, call.output), call.op_type)
    nodes = body_nodes(body, call)
    for node in nodes:
        for name in filter(None, node.output):
            names[name] = wanted.get(name) or f"{prefix}/{name}"
    given = [name for name in wanted if name in body.input and wanted[name]]
    passed = [helper.make_node("Identity", [names[name]], [wanted[name]]) for name in given]
    return [_renamed(node, names) for node in nodes] + passed


def _renamed(node: NodeProto, names: Mapping[str, str]) -> NodeProto:
    """A node that refers to values by other names, in its nested graphs too."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for attribute in copy.attribute:
        if attribute.type == AttributeProto.GRAPH:
            _rename_captured(attribute.g, names)
    return copy


def _rename_captured(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename what a nested graph takes from outside; its own values hide those around it."""
    own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    own.update(s.values.name for s in graph.sparse_initializer)
    own.update(name for node in graph.node for name in node.output)
    outer = {old: new for old, new in names.items() if old not in own}
    for i, node in enumerate(list(graph.node)):
        graph.node[i].CopyFrom(_renamed(node, outer))
    for v in graph.output:
        v.name = outer.get(v.name, v.name)
