"""The table of operators."""

from __future__ import annotations

import pytest

from tilewright.core.errors import UnsupportedError
from tilewright.ops.registry import FAMILIES, get_op, op_table


def test_no_operator_is_listed_twice() -> None:
    names = [row.name for family in FAMILIES for row in family.OPS]
    assert len(names) == len(set(names)) == len(op_table())


def test_unknown_operator() -> None:
    assert get_op("relu").name == "relu"
    with pytest.raises(UnsupportedError, match="no operator named 'rellu'") as caught:
        get_op("rellu")
    assert "relu" in caught.value.help
