"""Types as ONNX Runtime spells them: `tensor(float)`, `seq(tensor(int64))`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, TypeProto, ValueInfoProto

_SPELT = {"FLOAT": "float", "DOUBLE": "double"}
ELEMENT_NAMES: dict[int, str] = {
    number: _SPELT.get(name, name.lower())
    for name, number in TensorProto.DataType.items()
    if name != "UNDEFINED"
}
"""What an element type is called, by ONNX's number."""

ELEMENTS: dict[str, int] = {
    "bool": TensorProto.BOOL,
    "float16": TensorProto.FLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "complex64": TensorProto.COMPLEX64,
    "complex128": TensorProto.COMPLEX128,
    "bfloat16": TensorProto.BFLOAT16,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "float8_e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "int4": TensorProto.INT4,
    "uint4": TensorProto.UINT4,
    **{
        f"{sign}int{bits}": getattr(TensorProto, f"{sign}int{bits}".upper())
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
"""ONNX's number of an element type, by NumPy's name of it."""

_WIDE = {name: np.dtype(name) for name in ELEMENTS if hasattr(np, name)}


class NodeArg:
    """An input, output or initializer of a model: its name, shape and type."""

    __slots__ = ("name", "shape", "type")

    def __init__(self, name: str, shape: list[int | str | None], type: str) -> None:
        self.name = name
        self.shape = shape
        self.type = type

    def __str__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


@dataclass(frozen=True)
class Declared:
    """What a model declares of a value: its ONNX type, and that type as text."""

    name: str
    type: TypeProto
    text: str

    @staticmethod
    def of(value: ValueInfoProto, dims: Mapping[str, int]) -> Declared:
        """What `value` says, with the sizes that are given."""
        fixed = TypeProto()
        fixed.CopyFrom(value.type)
        for d in fixed.tensor_type.shape.dim if fixed.HasField("tensor_type") else ():
            if d.dim_param in dims:
                d.dim_value = dims[d.dim_param]
        return Declared(value.name, fixed, type_name(fixed))

    @property
    def kind(self) -> str:
        """Which of ONNX's kinds of types it is, as the field of `TypeProto` is called."""
        return self.type.WhichOneof("value") or ""

    def node_arg(self) -> NodeArg:
        """This as applications see it."""
        return NodeArg(self.name, shape_of(self.type), self.text)


def type_name(type: TypeProto) -> str:
    """A type as ONNX Runtime spells it."""
    kind = type.WhichOneof("value")
    if kind == "sequence_type":
        return f"seq({type_name(type.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({type_name(type.optional_type.elem_type)})"
    if kind == "map_type":
        key = ELEMENT_NAMES[type.map_type.key_type]
        return f"map({key},{type_name(type.map_type.value_type)})"
    if kind == "sparse_tensor_type":
        return f"sparse_tensor({ELEMENT_NAMES[type.sparse_tensor_type.elem_type]})"
    return tensor_name(type.tensor_type.elem_type)


def tensor_name(element: int) -> str:
    """The type of tensors with these elements."""
    return f"tensor({ELEMENT_NAMES.get(element, 'undefined')})"


def shape_of(type: TypeProto) -> list[int | str | None]:
    """Sizes, the names of those that vary, `None` for those without a name; `[]` if unknown."""
    while type.WhichOneof("value") == "optional_type":
        type = type.optional_type.elem_type
    if type.WhichOneof("value") != "tensor_type":
        return []
    dims = type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims]


def element_of(dtype: np.dtype[Any]) -> int | None:
    """ONNX's number of an array's element type; `None` where ONNX has no such type."""
    if dtype.kind in "OUST":
        return int(TensorProto.STRING)
    return ELEMENTS.get(dtype.name)


def numpy_of(element: int) -> np.dtype[Any] | None:
    """The NumPy type of an element type by ONNX's number; `None` where NumPy itself has none."""
    if element == TensorProto.STRING:
        return np.dtype(object)
    return next(
        (_WIDE[n] for n, number in ELEMENTS.items() if number == element and n in _WIDE), None
    )
