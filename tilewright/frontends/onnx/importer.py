"""From an ONNX model to a graph.

    graph = import_onnx("model.onnx", dims={"batch": 1})

Initializers become constants that refer to the model's bytes; names of inputs and outputs stay as
they are; shape arithmetic is known symbolically while importing (see `ops.graph_builder`), so that
shapes are attributes of our operators wherever the model computes them from shapes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from functools import partial

from onnx import ValueInfoProto, inliner

from tilewright.core.dtypes import STRING
from tilewright.core.errors import Error, FrontendError, Loc
from tilewright.frontends.onnx.backtracking import Backtracker, first_success
from tilewright.frontends.onnx.context import OnnxContext, identifier
from tilewright.frontends.onnx.convert_node import convert_node, nested_graph
from tilewright.frontends.onnx.model.constants import model_constants
from tilewright.frontends.onnx.model.dims import Dims
from tilewright.frontends.onnx.model.dtypes import onnx_dtype
from tilewright.frontends.onnx.model.read import Model, Source, read_model
from tilewright.frontends.onnx.model.toposort import node_name, ordered
from tilewright.frontends.onnx.segments.data_dependent import DataDependent
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.canonicalize.unify_dims import equate_dims


def import_onnx(source: Source, dims: Mapping[str, int] | None = None) -> Graph:
    """The graph of a model; `dims` fixes dynamic dimensions by name."""
    model = read_model(source)
    loc = Loc(model.file)
    try:
        return first_success(lambda backtracker: _import(model, Dims(dims or {}), backtracker))
    except Error as error:
        raise error.at(loc) from error.__cause__


def _import(model: Model, dims: Dims, backtracker: Backtracker) -> Graph:
    if model.proto.functions:
        model.proto = inliner.inline_local_functions(model.proto)
    graph = model.proto.graph
    g = GraphBuilder(identifier(graph.name or model.file), Loc(model.file))
    c = OnnxContext(
        g, model.opsets.get("", 0), nested=partial(nested_graph, model), backtracker=backtracker
    )
    _add_inputs(c, model, dims)
    _add_initializers(c, model)
    for proto in ordered(graph.node, set(c.values), model.file):
        convert_node(c, proto, model.opsets, Loc(model.file, node_name(proto)))
    g.loc = Loc(model.file)
    return with_outputs(c, [v.name for v in graph.output])


def _add_inputs(c: OnnxContext, model: Model, dims: Dims) -> None:
    # In old models every initializer is also listed as an input.
    constants = model_constants(model)
    for value in model.proto.graph.input:
        if value.name not in constants:
            c.values[value.name] = c.g.input(value.name, input_type(value, dims))
    dims.check_used()


def input_type(value: ValueInfoProto, dims: Dims) -> TensorType:
    """The declared type of a graph input."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise DataDependent(
            "onnx.input-type",
            f"input {value.name!r} is a {(kind or 'value of no type').removesuffix('_type')}",
            help="inputs must be tensors",
        )
    given = value.type.tensor_type
    if not given.HasField("shape"):
        raise DataDependent(
            "onnx.input-rank",
            f"input {value.name!r} has no shape",
            help="declare its shape; single dimensions may be left open",
        )
    shape = (dims.of(d, value.name, axis) for axis, d in enumerate(given.shape.dim))
    dtype = onnx_dtype(given.elem_type)
    if dtype == STRING:
        raise DataDependent("onnx.input-type", f"input {value.name!r} holds texts")
    return TensorType(dtype, tuple(shape))


def _add_initializers(c: OnnxContext, model: Model) -> None:
    for name, array in model_constants(model).items():
        if name in c.values:
            raise FrontendError("onnx.duplicate-value", f"{name!r} is defined twice")
        c.values[name] = c.table(array(), identifier(name))


def with_outputs(c: OnnxContext, outputs: list[str]) -> Graph:
    """The finished graph, its outputs under their ONNX names; one that is listed again is a copy
    with a name of its own."""
    defined = {out for node in c.g.nodes for out in node.outputs}
    inputs = {v.name for v in c.g.inputs}
    names: dict[str, str] = {}
    given, listed = set[str](), set(outputs)
    for name in outputs:
        if name not in c.values:
            raise FrontendError("onnx.undefined-value", f"output {name!r} is not defined")
        ours = c.values[name]
        again = name in given
        # an output may be an input as it is
        if again or (name not in inputs and (ours not in defined or ours in names)):
            ours = c.g.add("identity", ours, name=identifier(name))
        names[ours] = _of_its_own(name, len(names), listed) if again else name
        given.add(names[ours])
    # what later nodes say about sizes holds for earlier ones too
    return equate_dims(_renamed(c.g.graph(*names.values()), names))


def _of_its_own(name: str, number: int, taken: Container[str]) -> str:
    name = f"{name}.out{number}"
    while name in taken:
        name += "_"
    return name


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

        return node.rewired(new(node.inputs), new(node.outputs))

    constants = tuple(
        replace(k, name=renames[k.name]) if k.name in renames else k for k in graph.constants
    )
    return replace(graph, constants=constants, nodes=tuple(map(rename, graph.nodes)))
