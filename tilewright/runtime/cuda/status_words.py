"""The words to which kernels write what their index checks find.

They are pinned memory of the host, which the host reads without asking the GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from tilewright.runtime.cuda.driver import Driver


class StatusWords:
    """For each check an index, 0 if all was well, and the size that it must be below."""

    def __init__(self, driver: Driver, size: int) -> None:
        self._driver = driver
        self.size = size
        self._blank = bytes(size)
        self.address = driver.allocate_pinned(size) if size else 0
        if size:
            ctypes.memset(self.address, 0, size)

    def take(self) -> Sequence[int] | None:
        """The words if a check has failed since they were last taken.

        Of kernels that still run nothing may be there yet.
        """
        if not self.size or (found := ctypes.string_at(self.address, self.size)) == self._blank:
            return None
        words: list[int] = (ctypes.c_int64 * (self.size // 8)).from_buffer_copy(found)[:]
        if not any(words[::2]):
            return None  # a kernel writes the size, and is about to write the index
        ctypes.memset(self.address, 0, self.size)
        return words

    def close(self) -> None:
        """Free the memory."""
        if self.address:
            self._driver.free_pinned(self.address)
        self.address = self.size = 0
