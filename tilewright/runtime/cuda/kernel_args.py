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

    Words may change: matrices are described anew each time the driver asks for all.
    """

    def __init__(self, words: Sequence[int], matrices: Sequence[TensorMapArg] = ()) -> None:
        self.words = (ctypes.c_int64 * len(words))(*words)
        self.matrices = tuple(matrices)
        self._described: list[Any] = []
        self._given: Any = None

    def pointers(self, describe: Describe) -> Any:
        """The addresses of all arguments, valid until the next call."""
        self._described = [describe(self.words[m.argument], m.shape, m.box) for m in self.matrices]
        first = ctypes.addressof(self.words)
        *places, last = (first + 8 * n for n in range(len(self.words)))
        given = (*places, *map(ctypes.addressof, self._described), last)
        self._given = (ctypes.c_void_p * len(given))(*given)
        return self._given
