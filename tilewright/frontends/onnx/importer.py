"""From an ONNX model to a graph.

    graph = import_onnx("model.onnx", dims={"batch": 1})

Initializers become constants that refer to the model's bytes; names of inputs and outputs stay as
they are; shape arithmetic is known symbolically while importing (see `ops.build`), so that shapes
are attributes of our operators wherever the model computes them from shapes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from onnx import FunctionProto, GraphProto, NodeProto, ValueInfoProto, inliner

from tilewright.core.errors import Error, FrontendError, Loc, UnsupportedError
from tilewright.frontends.onnx.choices import Choices, first_working
from tilewright.frontends.onnx.context import Context, OnnxNode, identifier, onnx_dtype
from tilewright.frontends.onnx.dims import Dims
from tilewright.frontends.onnx.functions import body_nodes, function_body
from tilewright.frontends.onnx.order import node_name, ordered
from tilewright.frontends.onnx.read import DOMAINS, Model, Source, read_model
from tilewright.frontends.onnx.table import converter, converters, key_of
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType
from tilewright.ops.build import GraphBuilder


def import_onnx(source: Source, dims: Mapping[str, int] | None = None) -> Graph:
    """The graph of a model; `dims` fixes dynamic dimensions by name."""
    model = read_model(source)
    loc = Loc(model.file)
    try:
        return first_working(lambda choices: _import(model, Dims(dims or {}), choices))
    except Error as error:
        raise error.at(loc) from error.__cause__


def _import(model: Model, dims: Dims, choices: Choices) -> Graph:
    if model.proto.functions:
        model.proto = inliner.inline_local_functions(model.proto)
    graph = model.proto.graph
    g = GraphBuilder(identifier(graph.name or model.file), Loc(model.file))
    c = Context(g, model.opsets.get("", 0), nested=partial(_nested, model), choices=choices)
    _add_inputs(c, model, dims)
    _add_initializers(c, model)
    for proto in ordered(graph.node, set(c.values), model.file):
        _convert(c, proto, model.opsets, Loc(model.file, node_name(proto)))
    g.loc = Loc(model.file)
    return _with_outputs(c, [v.name for v in graph.output])


def _add_inputs(c: Context, model: Model, dims: Dims) -> None:
    # In old models every initializer is also listed as an input.
    initializers = {t.name for t in model.proto.graph.initializer}
    for value in model.proto.graph.input:
        if value.name not in initializers:
            c.values[value.name] = c.g.input(value.name, input_type(value, dims))
    dims.check_used()


def input_type(value: ValueInfoProto, dims: Dims) -> TensorType:
    """The declared type of a graph input."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise UnsupportedError(
            "onnx.input-type",
            f"input {value.name!r} is a {(kind or 'value of no type').removesuffix('_type')}",
            help="inputs must be tensors",
        )
    given = value.type.tensor_type
    if not given.HasField("shape"):
        raise FrontendError(
            "onnx.input-rank",
            f"input {value.name!r} has no shape",
            help="declare its shape; single dimensions may be left open",
        )
    shape = (dims.of(d, value.name, axis) for axis, d in enumerate(given.shape.dim))
    return TensorType(onnx_dtype(given.elem_type), tuple(shape))


def _add_initializers(c: Context, model: Model) -> None:
    graph = model.proto.graph
    if graph.sparse_initializer:
        raise UnsupportedError(
            "onnx.sparse-initializer",
            f"initializer {graph.sparse_initializer[0].values.name!r} is sparse",
            help="store it as a dense tensor",
        )
    for index, tensor in enumerate(graph.initializer):
        onnx_dtype(tensor.data_type)
        if tensor.name in c.values:
            raise FrontendError("onnx.duplicate-value", f"{tensor.name!r} is defined twice")
        c.values[tensor.name] = c.g.constant(model.array(index), identifier(tensor.name))


def _nested(model: Model, c: Context, graph: GraphProto) -> tuple[str, ...]:
    """Convert a nested graph where its node stands; `c.values` has what is defined around it."""
    loc = c.g.loc
    own = {name for proto in graph.node for name in proto.output}
    for tensor in graph.initializer:
        onnx_dtype(tensor.data_type)
        c.values[tensor.name] = c.g.constant(model.reader.array(tensor), identifier(tensor.name))
    for proto in ordered(graph.node, set(c.values) - own, model.file):
        _convert(c, proto, model.opsets, Loc(model.file, node_name(proto)))
    c.g.loc = loc
    missing = [v.name for v in graph.output if v.name not in c.values]
    if missing:
        raise FrontendError(
            "onnx.undefined-value", f"output {missing[0]!r} of a nested graph is not defined"
        )
    return tuple(c.values[v.name] for v in graph.output)


def _convert(c: Context, proto: NodeProto, opsets: Mapping[str, int], loc: Loc) -> None:
    domain = "" if proto.domain in DOMAINS else proto.domain
    inputs = tuple(c.values[name] if name else "" for name in proto.input)
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    n = OnnxNode(proto, inputs, loc, opsets.get(domain, 0))
    c.g.loc = loc
    try:
        outputs = _outputs(c, n)
    except Error as error:
        raise error.at(loc) from error.__cause__
    if len(outputs) < sum(map(bool, proto.output)):
        raise n.unsupported(
            f"it has {len(proto.output)} outputs", f"{len(outputs)} are supported here"
        )
    for name, ours in zip(proto.output, outputs, strict=False):
        if name:
            c.values[name] = ours


def _outputs(c: Context, n: OnnxNode) -> tuple[str, ...]:
    """Our names for a node's outputs, by its converter or else by what ONNX makes it of."""
    if key_of(n) not in converters():
        body = function_body(n, [c.type(i) if i else None for i in n.inputs])
        if body is not None:
            return _expand(c, n, body)
    return converter(n)(c, n)


def _expand(c: Context, n: OnnxNode, body: FunctionProto) -> tuple[str, ...]:
    opsets = {"" if o.domain in DOMAINS else o.domain: o.version for o in body.opset_import}
    formal = itertools.zip_longest(body.input, n.inputs[: len(body.input)], fillvalue="")
    inner = replace(c, opset=opsets.get("", c.opset), values=dict(formal))
    for proto in body_nodes(body, n.proto):
        _convert(inner, proto, opsets, n.loc)
    return tuple(inner.values[name] for name in body.output if name in inner.values)


def _with_outputs(c: Context, outputs: list[str]) -> Graph:
    """The finished graph, its outputs under their ONNX names."""
    defined = {out for node in c.g.nodes for out in node.outputs}
    names: dict[str, str] = {}
    for name in outputs:
        if name not in c.values:
            raise FrontendError("onnx.undefined-value", f"output {name!r} is not defined")
        ours = c.values[name]
        is_input = any(v.name == name for v in c.g.inputs)  # an output may be an input as it is
        if not is_input and (ours not in defined or ours in names):
            ours = c.g.add("identity", ours, name=identifier(name))
        names[ours] = name
    return _renamed(c.g.graph(*names.values()), names)


def _renamed(graph: Graph, names: dict[str, str]) -> Graph:
    """`graph` with values renamed; a value that had one of the new names gets another."""
    renames = {old: new for old, new in names.items() if old != new}
    if not renames:
        return graph
    taken = {*graph.types, *renames.values()}
    for old in set(renames.values()) & set(graph.types) - set(names):
        count = 1
        while f"{old}_{count}" in taken:
            count += 1
        renames[old] = f"{old}_{count}"
        taken.add(renames[old])

    def rename(node: Node) -> Node:
        def new(values: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(renames.get(v, v) for v in values)

        return replace(node, inputs=new(node.inputs), outputs=new(node.outputs))

    constants = tuple(
        replace(k, name=renames[k.name]) if k.name in renames else k for k in graph.constants
    )
    return replace(graph, constants=constants, nodes=tuple(map(rename, graph.nodes)))
