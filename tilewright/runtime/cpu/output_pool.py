"""Memory for a model's results, used again once nobody holds the result any more.

New memory of many megabytes is dear: the system has to clear every page of it. So the buffer of a
result is kept here, and given out again when no array lies in it: each array and each view of one
holds the buffer it lies in, so that a buffer with no holder but its pool is free.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.runtime.host_memory import ALIGNMENT, address, allocate

BUFFERS = 2
"""How many buffers an output keeps: the caller holds the last result when it asks for the next."""

_SMALL = 1 << 16
_references: Callable[[Any], int] = sys.getrefcount


class _Buffer:
    """Memory, and the array over it of which results are views."""

    __slots__ = ("address", "memory", "offset", "room", "shape", "whole")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, size: int) -> None:
        self.memory = allocate(size + ALIGNMENT)
        self.room = size
        start = address(self.memory)
        self.offset = -start % ALIGNMENT
        self.address = start + self.offset
        self.take_shape(shape, dtype)

    def take_shape(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """From now on, results have this shape."""
        self.shape = shape
        self.whole = np.ndarray(shape, dtype, self.memory, self.offset)


class OutputPool:
    """The buffers of one output. Not to be used by two threads at once.

    It keeps at most `BUFFERS` of them; a caller who holds more results than that owns the others.
    """

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = dtype
        self._buffers: list[_Buffer] = []

    def take(self, shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
        """An array of unspecified content that begins on a cache line, and its address."""
        for buffer in self._buffers:
            if buffer.shape is shape and _references(buffer.memory) == _FREE:
                return buffer.whole.view(), buffer.address
        return self._take_other(shape)

    def _take_other(self, shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
        size = math.prod(shape) * self._dtype.itemsize
        for buffer in self._buffers:
            # a small result must not hold on to a large buffer
            if size <= buffer.room <= max(2 * size, _SMALL) and _references(buffer.memory) == _FREE:
                buffer.take_shape(shape, self._dtype)
                return buffer.whole.view(), buffer.address
        self._make_room()
        buffer = _Buffer(shape, self._dtype, size)
        self._buffers.append(buffer)
        return buffer.whole.view(), buffer.address

    def _make_room(self) -> None:
        """Let go of a buffer when there are too many: one that is free if possible."""
        if len(self._buffers) >= BUFFERS:
            free = [b for b in self._buffers if _references(b.memory) == _FREE]
            self._buffers.remove((free or self._buffers)[0])


def _count_when_free() -> int:
    buffer = _Buffer((1,), np.dtype(np.uint8), 1)
    return _references(buffer.memory)


_FREE = _count_when_free()
"""The references to the memory of a buffer in which no result lies."""
