"""Maps: dictionaries from texts or integers to numbers or texts, made from tensors and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.frontends.onnx.segments.host.call import HostCall, HostOp

DOMAIN = "ai.onnx.ml"
# What CastMap casts to, and what stands where a map has nothing.
_CASTS: dict[str, tuple[type, Any]] = {
    "TO_FLOAT": (np.float32, 0),
    "TO_INT64": (np.int64, 0),
    "TO_STRING": (object, ""),
}


def zip_map(call: HostCall) -> tuple[Any, ...]:
    """Each row of scores as a map from labels."""
    scores = call.inputs[0]
    labels = _labels(call, "classlabels_strings", "classlabels_int64s")
    rows = scores.reshape(1, -1) if scores.ndim == 1 else scores
    if rows.ndim != 2 or rows.shape[1] != len(labels):
        raise call.failure(f"{len(labels)} labels for scores of shape {list(scores.shape)}")
    return ([dict(zip(labels, row.tolist(), strict=True)) for row in rows],)


def dict_vectorizer(call: HostCall) -> tuple[Any, ...]:
    """The values of a map in the order of a vocabulary, 0 for those that it has not."""
    given = call.inputs[0]
    maps: Sequence[Mapping[Any, Any]] = given if isinstance(given, list) else [given]
    vocabulary = _labels(call, "string_vocabulary", "int64_vocabulary")
    values = [value for m in maps for value in m.values()]
    is_text = bool(values) and isinstance(values[0], str)
    absent: Any = "" if is_text else 0
    dtype = object if is_text else _dtype(values)
    return (np.array([[m.get(word, absent) for word in vocabulary] for m in maps], dtype),)


def cast_map(call: HostCall) -> tuple[Any, ...]:
    """The values of a map by ascending key; a sparse one is filled up to a given length."""
    given, node = call.inputs[0], call.node
    kind = node.str_attr("cast_to", "TO_FLOAT")
    if kind not in _CASTS:
        raise call.failure(f"cast_to is {kind!r}", f"one of {', '.join(_CASTS)}")
    dtype, absent = _CASTS[kind]
    if node.str_attr("map_form", "DENSE") == "DENSE":
        values = [given[key] for key in sorted(given)]
    else:
        values = [given.get(key, absent) for key in range(node.int_attr("max_map", 1))]
    cast = str if dtype is object else float if dtype is np.float32 else int
    try:
        return (np.array([[cast(value) for value in values]], dtype),)
    except ValueError as error:
        raise call.failure(f"a text is no number: {error}") from error


def _labels(call: HostCall, texts: str, numbers: str) -> tuple[Any, ...]:
    found: tuple[Any, ...] = call.node.strs_attr(texts, ()) or call.node.ints_attr(numbers, ())
    if not found:
        raise call.failure("it has no labels", f"give {texts} or {numbers}")
    return found


def _dtype(values: Sequence[Any]) -> Any:
    """The type of a map's numbers: that which they have, else of Python's integers or floats."""
    if values and isinstance(values[0], np.generic):
        return values[0].dtype
    return np.int64 if values and all(isinstance(v, int) for v in values) else np.float32


HOST: dict[str, HostOp] = {
    f"{DOMAIN}::CastMap": cast_map,
    f"{DOMAIN}::DictVectorizer": dict_vectorizer,
    f"{DOMAIN}::ZipMap": zip_map,
}
