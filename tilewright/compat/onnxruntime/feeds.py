"""What applications feed to a model, checked as ONNX Runtime checks it and made arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TypeProto

from tilewright.compat.onnxruntime.status import Fail, InvalidArgument, error
from tilewright.compat.onnxruntime.types import Declared, element_of, numpy_of, tensor_name
from tilewright.compat.onnxruntime.values import OrtValue


def check_names(inputs: Sequence[Declared], feed: Mapping[str, Any]) -> None:
    """Refuse a feed in which an input that is not optional is missing."""
    given = list(feed.keys())
    missing = [d.name for d in inputs if d.name not in given and d.kind != "optional_type"]
    if missing:
        raise ValueError(f"Required inputs ({missing}) are missing from input feed ({given}).")


def checked_feed(known: Mapping[str, Declared], feed: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a feed by name, as arrays, lists and dictionaries that fit their inputs."""
    for name in feed:
        if name not in known:
            raise error(InvalidArgument, f"Invalid input name: {name}")
    return {name: fitting(known[name], value) for name, value in feed.items()}


def fitting(declared: Declared, value: Any) -> Any:
    """A value for an input."""
    given = value.value if isinstance(value, OrtValue) else value
    return _KINDS[declared.kind](declared.name, declared.type, given)


def _optional(name: str, type: TypeProto, value: Any) -> Any:
    if value is None:
        return None
    inner = type.optional_type.elem_type
    return _KINDS[inner.WhichOneof("value")](name, inner, value)


def _sequence(name: str, type: TypeProto, value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        raise error(
            InvalidArgument,
            f"input with name: '{name}' expected to be of type: 3 but received a tensor",
        )
    if value is None:
        raise _missing(name)
    if not isinstance(value, list):
        raise RuntimeError(
            f"Iterable of {_first_type(value)} should be given as array for input '{name}'."
        )
    inner = type.sequence_type.elem_type
    if inner.WhichOneof("value") != "tensor_type":
        return [_KINDS[inner.WhichOneof("value")](name, inner, item) for item in value]
    arrays = [_array(item, inner.tensor_type.elem_type) for item in value]
    if any(element_of(a.dtype) != inner.tensor_type.elem_type for a in arrays):
        raise RuntimeError("TensorSeq: tensor to be added has a different data type.")
    return arrays


def _map(name: str, type: TypeProto, value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise RuntimeError(f"Unable to handle object of type {_type_of(value)} for input '{name}'")
    return value


def _tensor(name: str, type: TypeProto, value: Any) -> np.ndarray:
    if value is None:
        raise _missing(name)
    expected = type.tensor_type.elem_type
    array = _array(value, expected)
    element = element_of(array.dtype)
    if element != expected:
        actual = f"tensor({array.dtype})" if element is None else tensor_name(element)
        raise error(
            InvalidArgument,
            f"Unexpected input data type. Actual: ({actual}) , expected: ({tensor_name(expected)})",
        )
    if type.tensor_type.HasField("shape"):
        _check_shape(name, type, array.shape)
    return array


def _array(value: Any, expected: int) -> np.ndarray:
    """An array in this machine's byte order; lists take the type that is expected."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OUST":
            return _texts(value)
        return value.astype(value.dtype.newbyteorder("="), copy=False)
    if not isinstance(value, list | tuple):
        raise RuntimeError(f"Unable to handle object of type {_type_of(value)}")
    try:
        return np.array(value, numpy_of(expected))
    except (ValueError, TypeError) as cause:
        raise RuntimeError(f"Unable to handle object of type {_type_of(value)}: {cause}") from cause


def _texts(array: np.ndarray) -> np.ndarray:
    """An array of Python's texts, whatever the elements were."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8").astype(object)
    found = array.astype(object)
    found.reshape(-1)[:] = [str(item) for item in found.reshape(-1)]
    return found


def _check_shape(name: str, type: TypeProto, shape: Sequence[int]) -> None:
    dims = type.tensor_type.shape.dim
    if len(dims) != len(shape):
        raise error(
            InvalidArgument,
            f"Invalid rank for input: {name} Got: {len(shape)} Expected: {len(dims)} "
            "Please fix either the inputs/outputs or the model.",
        )
    wrong = [
        f" index: {axis} Got: {size} Expected: {d.dim_value}"
        for axis, (size, d) in enumerate(zip(shape, dims, strict=True))
        if d.HasField("dim_value") and d.dim_value >= 0 and d.dim_value != size
    ]
    if wrong:
        lines = "\n".join(wrong)
        raise error(
            InvalidArgument,
            f"Got invalid dimensions for input: {name} for the following indices\n{lines}\n"
            " Please fix either the inputs/outputs or the model.",
        )


def _missing(name: str) -> Exception:
    return error(Fail, f"Missing Input: {name}")


def _type_of(value: Any) -> str:
    return f"<class '{type(value).__module__}.{type(value).__qualname__}'>".replace("builtins.", "")


def _first_type(value: Any) -> str:
    return _type_of(value[0] if isinstance(value, tuple) and value else value)


_KINDS: dict[str, Callable[[str, TypeProto, Any], Any]] = {
    "tensor_type": _tensor,
    "optional_type": _optional,
    "sequence_type": _sequence,
    "map_type": _map,
}
