"""Texts: joined, taken apart, matched, normalized, and converted from and to numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tilewright.core.dtypes import STRING
from tilewright.frontends.onnx.segments.host.call import HostCall, HostOp


def concat(call: HostCall) -> tuple[Any, ...]:
    """Two arrays of texts, joined element by element."""
    return (_texts(np.add(call.inputs[0], call.inputs[1], dtype=object)),)


def full_match(call: HostCall) -> tuple[Any, ...]:
    """Whether each text matches a pattern as a whole."""
    text = call.node.str_attr("pattern")
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise call.failure(f"{text!r} is no regular expression: {error}") from error
    found = [pattern.fullmatch(item) is not None for item in call.inputs[0].reshape(-1)]
    return (np.array(found, np.bool_).reshape(call.inputs[0].shape),)


def split(call: HostCall) -> tuple[Any, ...]:
    """Each text cut at a separator; rows are filled up with empty texts."""
    array, limit = call.inputs[0], call.node.int_attr("maxsplit", -1)
    separator = call.node.str_attr("delimiter", "") or None
    rows = [item.split(separator, limit) if item else [] for item in array.reshape(-1)]
    width = max(map(len, rows), default=0)
    filled = [part for row in rows for part in (*row, *[""] * (width - len(row)))]
    counts = np.array([len(row) for row in rows], np.int64).reshape(array.shape)
    return _texts(filled, (*array.shape, width)), counts


def normalize(call: HostCall) -> tuple[Any, ...]:
    """Texts in one case, without those that are listed; one empty text if none is left."""
    array, node = call.inputs[0], call.node
    stop = set(node.strs_attr("stopwords", ()))
    if not node.int_attr("is_case_sensitive", 0):
        stop = {word.lower() for word in stop}
        kept = [item for item in array.reshape(-1) if item.lower() not in stop]
    else:
        kept = [item for item in array.reshape(-1) if item not in stop]
    change = _CASES.get(node.str_attr("case_change_action", "NONE"))
    if change is None:
        raise call.failure("case_change_action is unknown", f"one of {', '.join(_CASES)}")
    shape = (1,) * (array.ndim - 1)
    return (_texts([change(item) for item in kept] or [""], (*shape, max(1, len(kept)))),)


def unique(call: HostCall) -> tuple[Any, ...]:
    """Each text once, where it first is, where each element went, and how often texts are."""
    array, node = call.inputs[0], call.node
    axis = node.int_attr("axis") if node.has_attr("axis") else None
    values, first, inverse, counts = np.unique(array.astype(str), True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not node.int_attr("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, axis or 0)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return _texts(values), first, inverse, counts


_CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


def cast(call: HostCall) -> tuple[Any, ...]:
    """Texts to numbers, or numbers to texts."""
    return (_cast(call, call.node.dtype_attr("to")),)


def cast_like(call: HostCall) -> tuple[Any, ...]:
    """Texts to numbers, or numbers to texts, as the second input is."""
    like = call.inputs[1]
    wanted = STRING if like.dtype.kind == "O" else like.dtype
    return (_cast(call, wanted),)


def _cast(call: HostCall, wanted: Any) -> np.ndarray:
    array = call.inputs[0]
    if wanted == STRING:
        items = array.reshape(-1)
        return _texts([_written(item) for item in items], array.shape)
    numpy = getattr(wanted, "numpy", wanted)
    try:
        numbers = [_number(item, numpy) for item in array.reshape(-1)]
    except ValueError as error:
        raise call.failure(f"a text is no number: {error}") from error
    return np.array(numbers).astype(numpy).reshape(array.shape)


def _written(item: Any) -> str:
    """A number as text: the shortest that reads back as the same number."""
    if isinstance(item, str):
        return item
    if isinstance(item, np.bool_ | np.integer):
        return str(int(item))
    if np.isnan(item):
        return "NaN"
    if np.isinf(item):
        return "INF" if item > 0 else "-INF"
    return str(item)


def _number(item: str, numpy: np.dtype) -> Any:
    return (
        int(item) if numpy.kind in "iu" else bool(int(item)) if numpy.kind == "b" else float(item)
    )


def _texts(items: Iterable[Any], shape: tuple[int, ...] | None = None) -> np.ndarray:
    array = np.asarray(items, dtype=object)
    return array if shape is None else array.reshape(shape)


HOST: dict[str, HostOp] = {
    "StringConcat": concat,
    "RegexFullMatch": full_match,
    "StringSplit": split,
    "StringNormalizer": normalize,
    "Unique": unique,
    "Cast": cast,
    "CastLike": cast_like,
}
