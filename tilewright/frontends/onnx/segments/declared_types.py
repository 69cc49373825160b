"""The types that an ONNX model declares for its inputs and outputs, and values checked by them.

Values are arrays; sequences are lists, maps dictionaries, an optional that is empty is `None`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TypeProto, ValueInfoProto

from tilewright.core.dtypes import STRING, DType
from tilewright.core.errors import ConfigError, ExecutionError
from tilewright.frontends.onnx.model.dtypes import onnx_dtype
from tilewright.runtime.binding import refuse_mask


@dataclass(frozen=True)
class ValuePort:
    """An input or output: its name, and its type as text.

    What is no tensor has no `dtype`; a tensor of unknown rank has no `shape`.
    """

    name: str
    type: str
    dtype: DType | None = None
    shape: tuple[int | str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


def value_port(name: str, declared: TypeProto) -> ValuePort:
    """An input or output of the declared type."""
    text = type_text(declared)
    if declared.WhichOneof("value") != "tensor_type":
        return ValuePort(name, text)
    tensor = declared.tensor_type
    dtype = onnx_dtype(tensor.elem_type)
    if not tensor.HasField("shape"):
        return ValuePort(name, text, dtype)
    sizes = (
        d.dim_value if d.HasField("dim_value") else d.dim_param or f"{name}_{axis}"
        for axis, d in enumerate(tensor.shape.dim)
    )
    return ValuePort(name, text, dtype, tuple(sizes))


def checked(name: str, value: Any, declared: TypeProto) -> Any:
    """A value for an input of the declared type, arrays as arrays; what does not fit is refused."""
    kind = declared.WhichOneof("value")
    if kind == "optional_type":
        return None if value is None else checked(name, value, declared.optional_type.elem_type)
    if kind == "sequence_type":
        if not isinstance(value, list | tuple):
            raise _misfit(name, value, declared)
        return [checked(name, item, declared.sequence_type.elem_type) for item in value]
    if kind == "map_type":
        return _map(name, value, declared)
    refuse_mask(name, value)
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        raise _misfit(name, value, declared) from None
    tensor = declared.tensor_type
    if not tensor.elem_type:
        raise ExecutionError("run.untyped", f"the model does not say of which type input {name} is")
    dtype = onnx_dtype(tensor.elem_type)
    if dtype == STRING and array.dtype.kind in "OU":
        array = array.astype(object)
    elif dtype == STRING or array.dtype != dtype.numpy:
        raise _misfit(name, value, declared)
    if tensor.HasField("shape") and not _fits(array.shape, tensor.shape.dim):
        raise _misfit(name, value, declared)
    return array


def _map(name: str, value: Any, declared: TypeProto) -> dict[Any, Any]:
    """A map with keys and values of the declared types."""
    key = str if onnx_dtype(declared.map_type.key_type) == STRING else int
    if not isinstance(value, Mapping) or not all(isinstance(k, key | np.integer) for k in value):
        raise _misfit(name, value, declared)
    dtype = onnx_dtype(declared.map_type.value_type.tensor_type.elem_type)
    if dtype == STRING:
        return {key(k): str(v) for k, v in value.items()}
    return {key(k): dtype.numpy.type(v) for k, v in value.items()}


def with_dims(declared: TypeProto, dims: Mapping[str, int]) -> TypeProto:
    """A declared type with the sizes that are given."""
    copy = TypeProto()
    copy.CopyFrom(declared)
    for d in copy.tensor_type.shape.dim if copy.HasField("tensor_type") else ():
        if d.dim_param in dims:
            d.dim_value = dims[d.dim_param]
    return copy


def check_dim_names(dims: Mapping[str, int], declared: Sequence[ValueInfoProto]) -> None:
    """Refuse values for dimensions that no input has."""
    known = {d.dim_param for v in declared for d in v.type.tensor_type.shape.dim}
    unknown = ", ".join(sorted({*dims} - known))
    if unknown:
        raise ConfigError("dims.unknown", f"the model has no dynamic dimension named {unknown}")


def _fits(shape: Sequence[int], dims: Sequence[Any]) -> bool:
    if len(shape) != len(dims):
        return False
    known = ((size, d.dim_value) for size, d in zip(shape, dims, strict=True))
    return all(size == wanted for size, wanted in known if wanted > 0)


def _misfit(name: str, value: Any, declared: TypeProto) -> ExecutionError:
    given = type(value).__name__
    if isinstance(value, np.ndarray | np.generic):
        given = f"an array of {value.dtype} and shape {list(value.shape)}"
    return ExecutionError("run.input", f"input {name} is {type_text(declared)}, got {given}")


def type_text(type: TypeProto) -> str:
    """A declared type, for people."""
    kind = type.WhichOneof("value")
    if kind == "sequence_type":
        return f"seq({type_text(type.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({type_text(type.optional_type.elem_type)})"
    if kind == "map_type":
        key = onnx_dtype(type.map_type.key_type)
        return f"map({key}, {type_text(type.map_type.value_type)})"
    if kind != "tensor_type":
        return str(kind)
    tensor = type.tensor_type
    dtype = onnx_dtype(tensor.elem_type)
    if not tensor.HasField("shape"):
        return f"{dtype}[...]"
    dims = tensor.shape.dim
    sizes = (str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in dims)
    return f"{dtype}[{', '.join(sizes)}]"
