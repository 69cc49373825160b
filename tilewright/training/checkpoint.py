"""Checkpoints: named arrays and texts in one file of the format of safetensors.

    8 bytes   the length of the header, little-endian
    header    JSON: {"__metadata__": {...}, name: {"dtype", "shape", "data_offsets"}}
    data      the arrays one after another

Any reader of safetensors reads them. A file is complete or not there: it is written beside its
place and then moved.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.dtypes import DTYPES, DType, from_numpy
from tilewright.core.errors import FrontendError

_LENGTH = 8
_LONGEST_HEADER = 100_000_000
# What safetensors calls the element types that the two have.
_NAMES = {
    "f64": "F64",
    "f32": "F32",
    "f16": "F16",
    "bf16": "BF16",
    "i64": "I64",
    "i32": "I32",
    "i16": "I16",
    "i8": "I8",
    "u64": "U64",
    "u32": "U32",
    "u16": "U16",
    "u8": "U8",
    "bool": "BOOL",
}
_TYPES: dict[str, DType] = {name: DTYPES[own] for own, name in _NAMES.items()}


def write_checkpoint(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]
) -> Path:
    """Write arrays and texts by name."""
    header: dict[str, Any] = {"__metadata__": dict(texts)}
    end = 0
    data = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in data.items():
        start, end = end, end + array.nbytes
        dtype = _NAMES[from_numpy(array.dtype).name]
        shape = list(arrays[name].shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    place = Path(path)
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    with open(beside, "wb") as file:
        file.write(len(text).to_bytes(_LENGTH, "little") + text)
        for array in data.values():
            file.write(array.tobytes())
    os.replace(beside, place)
    return place


def read_checkpoint(
    path: str | os.PathLike[str],
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and texts of a file, by name."""
    content = Path(path).read_bytes()
    header, start = _header(path, content)
    texts = {str(k): str(v) for k, v in header.pop("__metadata__", {}).items()}
    try:
        arrays = {name: _array(content[start:], row) for name, row in header.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _broken(path, f"an array is not as its header says: {error}") from error
    return arrays, texts


def _header(path: str | os.PathLike[str], content: bytes) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(content[:_LENGTH], "little")
    end = _LENGTH + length
    if len(content) < _LENGTH or length > _LONGEST_HEADER or end > len(content):
        raise _broken(path, "it ends within its header")
    try:
        found = json.loads(content[_LENGTH:end])
    except ValueError as error:
        raise _broken(path, "its header is no JSON") from error
    if not isinstance(found, dict) or not isinstance(found.get("__metadata__", {}), dict):
        raise _broken(path, "its header is no table")
    return found, end


def _array(data: bytes, row: Mapping[str, Any]) -> np.ndarray:
    first, last = row["data_offsets"]
    if not 0 <= first <= last <= len(data):
        raise ValueError(f"bytes {first} to {last} of {len(data)}")
    dtype = _TYPES[row["dtype"]].numpy
    return np.frombuffer(data[first:last], dtype).reshape(row["shape"]).copy()


def _broken(path: str | os.PathLike[str], what: str) -> FrontendError:
    return FrontendError(
        "checkpoint.format",
        f"{os.fspath(path)} is no checkpoint: {what}",
        help="give a file that `save` of a trainer has written",
    )
