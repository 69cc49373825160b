"""Arrays for native code: their addresses, and new ones that are aligned to cache lines."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import ExecutionError

ALIGNMENT = 64
"""Bytes of a cache line, and of the widest vector."""

_addressof = ctypes.addressof
_view: Callable[[Any], Any] = (ctypes.c_char * 0).from_buffer


def address(array: np.ndarray) -> int:
    """The address of the first element."""
    try:
        return _addressof(_view(array))  # four times as fast as asking NumPy
    except (
        TypeError,
        ValueError,
    ):  # memory that may not be written; bf16, of which ctypes is unaware
        return int(array.__array_interface__["data"][0])


def allocate(size: int) -> np.ndarray:
    """New memory of unspecified content, of `size` bytes; what there is not is an error."""
    try:
        return np.empty(size, np.uint8)
    except (MemoryError, ValueError, OverflowError) as error:
        raise ExecutionError(
            "run.memory",
            f"the model needs {size} bytes of memory, which there are not",
            help="run it on smaller inputs",
        ) from error


def aligned_empty(shape: Sequence[int], dtype: np.dtype) -> tuple[np.ndarray, int]:
    """A new array of unspecified content that begins on a cache line, and its address."""
    memory = allocate(math.prod(shape) * dtype.itemsize + ALIGNMENT)
    start = address(memory)
    offset = -start % ALIGNMENT
    return np.ndarray(shape, dtype, memory, offset), start + offset


def _find_data_offset() -> int | None:
    if sys.implementation.name != "cpython":
        return None
    offset = object.__basicsize__
    for array in (np.zeros(3, np.float32), np.frombuffer(b"read-only", np.uint8)[2:]):
        found = ctypes.c_void_p.from_address(id(array) + offset).value
        if found != array.__array_interface__["data"][0]:
            return None
    return offset


DATA_OFFSET = _find_data_offset()
"""Where native code finds the address of an array's data, counted from the array's `id`.

It is the first field of NumPy's C struct; None where that does not hold.
"""
