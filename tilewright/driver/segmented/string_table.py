"""Strings in native code: each is its index in a table that lives as long as a segment runs."""

from __future__ import annotations

import numpy as np


class StringTable:
    """A table of texts; equal texts have one number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbers(self, array: np.ndarray) -> np.ndarray:
        """An array of texts as one of numbers; any other array as it is."""
        if array.dtype.kind != "O":
            return array
        table = self._numbers
        found = [table.setdefault(text, len(table)) for text in array.reshape(-1)]
        return np.array(found, np.int64).reshape(array.shape)

    def texts(self, numbers: np.ndarray) -> np.ndarray:
        """The texts with these numbers."""
        table = np.array([*self._numbers, None], object)[:-1]
        found: np.ndarray = table[numbers.reshape(-1)].reshape(numbers.shape)
        return found
