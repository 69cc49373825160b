"""ONNX functions: operators that are defined by others. Those without a converter are inlined.

The body of such a function comes from ONNX's schema; some bodies depend on the types of the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, defs

from tilewright.arith.expr import as_int
from tilewright.frontends.onnx.context import OnnxNode
from tilewright.frontends.onnx.model.dtypes import DTYPES
from tilewright.ir.types import TensorType

_CODES = {dtype: code for code, dtype in DTYPES.items()}


def function_body(n: OnnxNode, types: Sequence[TensorType | None]) -> FunctionProto | None:
    """What ONNX says the operator is made of, or `None` if it is no function.

    The body's own attributes hold the defaults.
    """
    domain = str(n.proto.domain) if n.proto.domain != "ai.onnx" else ""
    if not defs.has(n.op_type, n.opset, domain):
        return None
    schema: Any = defs.get_schema(n.op_type, n.opset, domain)
    if schema.has_function:
        version = _newest(schema.function_opset_versions, n.opset)
        found = schema.get_function_with_opset_version(version)
    elif schema.has_context_dependent_function:
        _check_attributes(n, schema)
        version = _newest(schema.context_dependent_function_opset_versions, n.opset)
        protos = [_type_proto(t) for t in types]
        try:
            found = schema.get_context_dependent_function_with_opset_version(
                version, n.proto.SerializeToString(), protos
            )
        except (RuntimeError, ValueError) as error:  # the maker's own checks
            raise n.invalid(f"ONNX cannot say what it is made of: {error}") from error
    else:
        return None
    if not found:
        return None
    body: FunctionProto = FunctionProto.FromString(found)
    if not body.output:  # its maker gave up half-way
        raise n.invalid("ONNX does not say what it is made of with these attributes")
    defaults = (a.default_value for a in schema.attributes.values())
    body.attribute_proto.extend(d for d in defaults if d.name)
    return body


def _check_attributes(n: OnnxNode, schema: Any) -> None:
    """ONNX's own makers of bodies take it for granted that required attributes are there."""
    given = {a.name: a.type for a in n.proto.attribute}
    for name, expected in schema.attributes.items():
        if expected.required and given.get(name) != int(expected.type):
            raise n.invalid(f"attribute {name!r} is missing, or of another type")


def _newest(versions: Sequence[int], opset: int) -> int:
    return max((v for v in versions if v <= opset), default=min(versions))


def body_nodes(body: FunctionProto, call: NodeProto) -> list[NodeProto]:
    """The nodes of a function with the attributes of this call filled in."""
    given: dict[str, AttributeProto] = {a.name: a for a in body.attribute_proto}
    given.update((a.name, a) for a in call.attribute)
    nodes = []
    for proto in body.node:
        node = NodeProto()
        node.CopyFrom(proto)
        node.name = ""
        del node.attribute[:]
        node.attribute.extend(_filled(proto.attribute, given))
        nodes.append(node)
    return nodes


def _filled(
    attributes: Sequence[AttributeProto], given: Mapping[str, AttributeProto]
) -> list[AttributeProto]:
    """References to the function's attributes replaced; one that is not given is left out."""
    filled = []
    for attribute in attributes:
        if not attribute.ref_attr_name:
            filled.append(attribute)
        elif attribute.ref_attr_name in given:
            copy = AttributeProto()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
            filled.append(copy)
    return filled


def _type_proto(type: TensorType | None) -> bytes:
    """The type, serialized; nothing for an absent input."""
    if type is None:
        return b""
    proto = TypeProto()
    proto.tensor_type.elem_type = _CODES[type.dtype]
    for size in type.shape:
        dim = proto.tensor_type.shape.dim.add()
        known = as_int(size)
        if known is not None:
            dim.dim_value = known
    # An empty list of dimensions is a scalar, which must not read as an unknown shape.
    proto.tensor_type.shape.SetInParent()
    return bytes(proto.SerializeToString())
