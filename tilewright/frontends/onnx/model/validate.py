"""Validate a parsed model: what all later steps rely on is checked once, here.

A model file is untrusted. Strings must be valid, every node must have as many operands and results
as its operator takes, the results of the model must be defined, and functions must not be recursive
nor expand to an excessive number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, defs

from tilewright.core.errors import FrontendError, Loc
from tilewright.frontends.onnx.model.toposort import node_name

MAX_VERSION = (1 << 31) - 1
# Functions written out may make a model at most this long.
MAX_NODES = 1 << 20

_Opsets = Mapping[str, int]
# Which operands an operator must have, from where on none may be absent, how many at least and at
# most, and how many results.
_Counts = tuple[tuple[int, ...], int, int, int, int, int]


def check_wellformed(model: ModelProto, file: str) -> None:
    """Raise a FrontendError for a model that is not one."""
    opsets = _opsets(model.opset_import)
    _check_graph(model.graph, opsets, file)
    _check_outputs(model.graph, file)
    for function in model.functions:
        _check_texts((function.name, function.domain, *function.input, *function.output), file)
        for node in function.node:
            _check_node(node, _opsets(function.opset_import), file)
        made = {*function.input, *(name for node in function.node for name in node.output)}
        _check_defined(function.output, made, Loc(file, function.name))
    if model.functions:
        _check_functions(model, file)


def _opsets(imports: Iterable[Any]) -> dict[str, int]:
    return {_domain(o.domain): o.version for o in imports}


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _check_graph(graph: GraphProto, opsets: _Opsets, file: str) -> None:
    values = (graph.input, graph.output, graph.value_info, graph.initializer)
    _check_texts((graph.name, *(v.name for field in values for v in field)), file)
    for value in graph.input:
        if not value.name:
            raise FrontendError(
                "onnx.no-name", f"graph {graph.name!r} has an input without a name", loc=Loc(file)
            )
        dims = value.type.tensor_type.shape.dim
        _check_texts((d.dim_param for d in dims), file)
    for node in graph.node:
        _check_node(node, opsets, file)


def _check_node(node: NodeProto, opsets: _Opsets, file: str) -> None:
    _check_texts((node.name, node.op_type, node.domain, *node.input, *node.output), file)
    domain = _domain(node.domain)
    if not 0 < opsets.get(domain, 1) <= MAX_VERSION:
        message = f"there is no version {opsets[domain]} of the operators"
        raise _error("opset", message, node, file)
    if not domain and "" not in opsets:
        raise _error("opset", "the model does not import the ONNX operators", node, file)
    _check_counts(node, _counts(node.op_type, opsets.get(domain, 0), domain), file)
    for attribute in node.attribute:
        _check_texts((attribute.name, attribute.ref_attr_name), file)
        if attribute.type == AttributeProto.GRAPH:
            _check_graph(attribute.g, opsets, file)


def _check_texts(texts: Iterable[object], file: str) -> None:
    """Protobuf gives the bytes of what is no UTF-8."""
    for text in texts:
        if isinstance(text, bytes):
            raise FrontendError(
                "onnx.damaged",
                f"{file} has a name that is not UTF-8: {text[:40]!r}",
                loc=Loc(file),
                help="the model file is damaged",
            )


@lru_cache(maxsize=4096)
def _counts(op: str, version: int, domain: str) -> _Counts | None:
    if not defs.has(op, domain):
        return None
    known = version >= 1 and defs.has(op, version, domain)
    # An operator that is newer than the model says has the inputs that it has now.
    s: Any = defs.get_schema(op, version, domain) if known else defs.get_schema(op, domain)
    formal = enumerate(s.inputs)
    needed = tuple(i for i, p in formal if p.option == defs.OpSchema.FormalParameterOption.Single)
    variadic = s.inputs and s.inputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic
    least = s.min_input if variadic else 0
    rest = len(s.inputs) - 1 if variadic else s.max_input
    return needed, rest, least, s.max_input, s.min_output, s.max_output


def _check_counts(node: NodeProto, counts: _Counts | None, file: str) -> None:
    if counts is None:
        return  # whoever converts it knows, or nobody
    needed, rest, least, most, least_out, most_out = counts
    given = _length(node.input)
    if given > most:
        raise _error("node", f"{given} inputs, {most} are the most it takes", node, file)
    listed = (*needed, *range(rest, given))
    absent = [i for i in listed if i >= given or not node.input[i]]
    if absent or given < least:
        index = absent[0] if absent else given
        raise _error("missing-input", f"no input {index}", node, file)
    results = _length(node.output)
    if not least_out <= results <= most_out:
        span = least_out if least_out == most_out else f"{least_out} to {most_out}"
        raise _error("node", f"{results} outputs, it has {span}", node, file)


def _length(names: Sequence[str]) -> int:
    """How many there are, up to the last that is not absent."""
    length = len(names)
    while length and not names[length - 1]:
        length -= 1
    return length


def _check_outputs(graph: GraphProto, file: str) -> None:
    fields = (graph.input, graph.initializer)
    known = {v.name for field in fields for v in field}
    known |= {t.values.name for t in graph.sparse_initializer}
    known.update(name for node in graph.node for name in node.output)
    _check_defined([v.name for v in graph.output], known, Loc(file))


def _check_defined(outputs: Iterable[str], known: set[str], loc: Loc) -> None:
    for name in outputs:
        if name not in known:
            raise FrontendError("onnx.undefined-value", f"output {name!r} is not defined", loc=loc)


def _check_functions(model: ModelProto, file: str) -> None:
    """Count the nodes that there are once all functions are written out."""
    known: dict[tuple[str, str, str], FunctionProto] = {}
    for f in model.functions:
        if known.setdefault((_domain(f.domain), f.name, f.overload), f) is not f:
            message = f"function {f.name!r} is defined a second time"
            raise FrontendError("onnx.function", message, loc=Loc(file, f.name))
    sizes: dict[tuple[str, str, str], int] = {}

    def key(node: NodeProto) -> tuple[str, str, str]:
        return _domain(node.domain), node.op_type, node.overload

    # Functions before those that call them; one that is met again on its own way calls itself.
    way: list[tuple[tuple[str, str, str], FunctionProto, bool]] = []
    way += [(name, f, False) for name, f in known.items()]
    entered: set[tuple[str, str, str]] = set()
    while way:
        name, function, done = way.pop()
        inner = [key(n) for n in _all_nodes(function.node)]
        if done:
            sizes[name] = sum(sizes.get(k, 1) for k in inner)
            entered.discard(name)
        elif name not in sizes:
            entered.add(name)
            way.append((name, function, True))
            called = [k for k in dict.fromkeys(inner) if k in known and k not in sizes]
            circle = [k for k in called if k in entered]
            if circle:
                message = f"function {circle[0][1]!r} calls itself"
                raise FrontendError("onnx.function", message, loc=Loc(file, circle[0][1]))
            way += [(k, known[k], False) for k in called]
    total = sum(sizes.get(key(n), 1) for n in _all_nodes(model.graph.node))
    if total > MAX_NODES:
        message = f"its functions written out are {total} nodes, {MAX_NODES} are the most"
        raise FrontendError("onnx.function", message, loc=Loc(file))


def _all_nodes(nodes: Iterable[NodeProto]) -> list[NodeProto]:
    found, stack = [], list(nodes)
    while stack:
        node = stack.pop()
        found.append(node)
        for attribute in node.attribute:
            stack += attribute.g.node
    return found


def _error(code: str, message: str, node: NodeProto, file: str) -> FrontendError:
    loc = Loc(file, node_name(node))
    return FrontendError(f"onnx.{code}", f"{node.op_type}: {message}", loc=loc)
