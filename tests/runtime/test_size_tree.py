from __future__ import annotations

import pytest

from tilewright.runtime.size_tree import OPERATIONS, value_of


def test_values() -> None:
    sizes = {"N": 10, "size.0": 3}
    assert value_of(7, sizes) == 7
    assert value_of("size.0", sizes) == 3
    assert value_of(["floordiv", ["add", "N", 255], 256], sizes) == 1
    assert value_of(["select", ["lt", "N", 5], 1, ["neg", 2]], sizes) == -2
    assert value_of(["not", ["and", True, ["le", 3, "N"]]], sizes) == 0
    with pytest.raises(KeyError):
        value_of("M", sizes)
    assert "select" in OPERATIONS
