"""Positions of true elements; the tests of `bind_dim` compare native code with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.run_op import run_op
from tilewright.core.dtypes import BOOL
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder


def test_positions_and_their_number() -> None:
    mask = np.array([False, True, True, False, True])
    positions, count = run_op("flatnonzero", mask)
    assert count.tolist() == [3]
    assert positions[:3].tolist() == [1, 2, 4]


def test_types() -> None:
    g = GraphBuilder("g")
    with pytest.raises(TypeCheckError, match="not a row of truth values"):
        g.add_many("flatnonzero", g.input("m", tensor(BOOL, 2, 2)))
