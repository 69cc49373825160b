"""A pool of result buffers, reused when no array refers to them any more.

Fresh memory of many megabytes is expensive: the kernel zeroes every page. So the pool keeps the
buffers of results. Each result array and each view of one holds a reference to its buffer; a buffer
that only the pool refers to is free.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.runtime.host_memory import ALIGNMENT, address, allocate

BUFFERS = 2
"""Buffers of an output: the caller still holds the last result when it asks for the next."""

_ANY_FIT_BYTES = 1 << 16
_references: Callable[[Any], int] = sys.getrefcount


class _Buffer:
    """Memory, and the array over it of which results are views."""

    __slots__ = ("address", "memory", "offset", "shape", "size", "whole")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, size: int) -> None:
        self.memory = allocate(size + ALIGNMENT)
        self.size = size
        start = address(self.memory)
        self.offset = -start % ALIGNMENT
        self.address = start + self.offset
        self.take_shape(shape, dtype)

    def take_shape(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Let results have this shape from now on."""
        self.shape = shape
        self.whole = np.ndarray(shape, dtype, self.memory, self.offset)


class OutputPool:
    """The buffers of one output. Not thread-safe.

    It keeps at most `BUFFERS` of them; a caller who holds more results than that owns the others.
    """

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = dtype
        self._buffers: list[_Buffer] = []

    def take(self, shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
        """An uninitialized array, aligned to a cache line, and its address."""
        for buffer in self._buffers:
            if buffer.shape is shape and _references(buffer.memory) == _FREE:
                return buffer.whole.view(), buffer.address
        return self._take_other(shape)

    def _take_other(self, shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
        size = math.prod(shape) * self._dtype.itemsize
        for buffer in self._buffers:
            # a small result must not keep a large buffer alive
            if (
                size <= buffer.size <= max(2 * size, _ANY_FIT_BYTES)
                and _references(buffer.memory) == _FREE
            ):
                buffer.take_shape(shape, self._dtype)
                return buffer.whole.view(), buffer.address
        self._evict()
        buffer = _Buffer(shape, self._dtype, size)
        self._buffers.append(buffer)
        return buffer.whole.view(), buffer.address

    def _evict(self) -> None:
        """Drop a buffer where there are too many, a free one if possible."""
        if len(self._buffers) >= BUFFERS:
            free = [b for b in self._buffers if _references(b.memory) == _FREE]
            self._buffers.remove((free or self._buffers)[0])


def _count_when_free() -> int:
    buffer = _Buffer((1,), np.dtype(np.uint8), 1)
    return _references(buffer.memory)


_FREE = _count_when_free()
"""The reference count of a free buffer's memory."""
