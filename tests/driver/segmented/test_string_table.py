"""Strings as indices."""

from __future__ import annotations

import numpy as np

from tilewright.driver.segmented.string_table import StringTable


def test_there_and_back() -> None:
    table = StringTable()
    words = np.array([["b", "a"], ["b", ""]], object)
    numbers = table.numbers(words)
    assert numbers.dtype == np.int64
    assert numbers[0, 0] == numbers[1, 0]
    assert len(np.unique(numbers)) == 3
    assert table.texts(numbers[::-1]).tolist() == words[::-1].tolist()
    assert table.texts(np.zeros((0, 2), np.int64)).shape == (0, 2)


def test_other_arrays_stay() -> None:
    array = np.arange(3)
    assert StringTable().numbers(array) is array
