"""The arguments of a launch: words, and tensor maps of tensors at some of their addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Describe = Callable[[int, Sequence[int], Sequence[int]], Any]
"""A tensor: its address and shape, and the box of a TMA copy."""


@dataclass(frozen=True)
class TensorMapArg:
    """A tensor that a kernel loads by TMA; its address is the argument of that index."""

    argument: int
    shape: tuple[int, ...]
    box: tuple[int, ...]


class Arguments:
    """Addresses, sizes and the index of a step; tensor maps come before the last of these.

    Words may change: a tensor that lies elsewhere is described anew when the driver asks for all.
    """

    def __init__(self, words: Sequence[int], matrices: Sequence[TensorMapArg] = ()) -> None:
        self.words = (ctypes.c_int64 * len(words))(*words)
        self.matrices = tuple(matrices)
        self._described: list[Any] = [None] * len(self.matrices)
        self._starts: list[int | None] = [None] * len(self.matrices)
        first, self._first_map = ctypes.addressof(self.words), len(words) - 1
        *places, last = (first + 8 * n for n in range(len(words)))
        given = (*places, *(0 for _ in self.matrices), last)
        self._given = (ctypes.c_void_p * len(given))(*given)

    def pointers(self, describe: Describe) -> Any:
        """The addresses of all arguments: the same array each time."""
        for n, m in enumerate(self.matrices):
            start = self.words[m.argument]
            if start != self._starts[n]:
                described = describe(start, m.shape, m.box)
                self._given[self._first_map + n] = ctypes.addressof(described)
                self._described[n], self._starts[n] = described, start
        return self._given
