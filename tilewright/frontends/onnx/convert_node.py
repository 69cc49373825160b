"""Convert ONNX nodes in order: by their converters, or by ONNX's function bodies."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from onnx import FunctionProto, GraphProto, NodeProto

from tilewright.core.errors import Error, FrontendError, Loc, UnsupportedError
from tilewright.frontends.onnx.context import OnnxContext, OnnxNode, identifier
from tilewright.frontends.onnx.functions import body_nodes, function_body
from tilewright.frontends.onnx.model.constants import graph_constants
from tilewright.frontends.onnx.model.read import DOMAINS, Model
from tilewright.frontends.onnx.model.toposort import node_name, ordered
from tilewright.frontends.onnx.segments.data_dependent import HostOnly
from tilewright.frontends.onnx.segments.host.table import host_ops
from tilewright.frontends.onnx.table import converter, converters, key_of


def nested_graph(model: Model, c: OnnxContext, graph: GraphProto) -> tuple[str, ...]:
    """Convert a nested graph where its node stands; `c.values` has what is defined around it."""
    loc = c.g.loc
    opsets = {**model.opsets, "": c.opset}  # a function may be written for another version
    own = {name for proto in graph.node for name in proto.output}
    for name, array in graph_constants(graph, model.reader).items():
        c.values[name] = c.table(array(), identifier(name))
    for proto in ordered(graph.node, set(c.values) - own, model.file):
        convert_node(c, proto, opsets, Loc(model.file, node_name(proto)))
    c.g.loc = loc
    missing = [v.name for v in graph.output if v.name not in c.values]
    if missing:
        raise FrontendError(
            "onnx.undefined-value", f"output {missing[0]!r} of a nested graph is not defined"
        )
    return tuple(c.values[v.name] for v in graph.output)


def convert_node(c: OnnxContext, proto: NodeProto, opsets: Mapping[str, int], loc: Loc) -> None:
    """Add what a node computes to the graph of `c`; its outputs are then among the values."""
    n = onnx_node(c, proto, opsets, loc)
    c.g.loc = loc
    try:
        outputs = _outputs(c, n)
    except Error as error:
        raise error.at(loc) from error.__cause__
    except MemoryError as error:
        message = f"{n.op_type}: what it computes of constants does not fit into memory"
        raise UnsupportedError("onnx.memory", message, loc=loc) from error
    if len(outputs) < sum(map(bool, proto.output)):
        raise n.unsupported(
            f"it has {len(proto.output)} outputs", f"{len(outputs)} are supported here"
        )
    for name, ours in zip(proto.output, outputs, strict=False):
        if name:
            c.values[name] = ours


def _outputs(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Our names for a node's outputs, by its converter or else by what ONNX makes it of."""
    if key_of(n) not in converters():
        body = function_body(n, [c.type(i) if i else None for i in n.inputs])
        if body is not None:
            return _expand(c, n, body)
        if key_of(n) in host_ops():
            raise HostOnly(n.op_type, n.loc)
    return converter(n)(c, n)


def _expand(c: OnnxContext, n: OnnxNode, body: FunctionProto) -> tuple[str, ...]:
    # A body may leave out a version: it is written for that of the model then.
    opsets = {"": c.opset}
    opsets |= {"" if o.domain in DOMAINS else o.domain: o.version for o in body.opset_import}
    formal = itertools.zip_longest(body.input, n.inputs[: len(body.input)], fillvalue="")
    inner = replace(c, opset=opsets[""], values=dict(formal))
    for proto in body_nodes(body, n.proto):
        missing = [name for name in proto.input if name and name not in inner.values]
        if missing:  # a maker of bodies has met attributes that it does not know
            raise n.invalid(f"what ONNX makes it of reads {missing[0]!r}, which nothing defines")
        convert_node(inner, proto, opsets, n.loc)
    return tuple(inner.values[name] for name in body.output if name in inner.values)


def onnx_node(c: OnnxContext, proto: NodeProto, opsets: Mapping[str, int], loc: Loc) -> OnnxNode:
    """A node as converters see it, with our names of its inputs."""
    domain = "" if proto.domain in DOMAINS else proto.domain
    inputs = tuple(c.values[name] if name else "" for name in proto.input)
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    return OnnxNode(proto, inputs, loc, opsets.get(domain, 0))
