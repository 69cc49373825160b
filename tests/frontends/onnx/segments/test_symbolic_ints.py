"""Numbers that a segment takes for sizes."""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Var, const
from tilewright.frontends.onnx.segments.symbolic_ints import (
    MAX_SIZE,
    SymbolicInts,
    can_be_sizes,
    shape_carrier,
)


def test_numbers_and_symbols() -> None:
    value = SymbolicInts(np.array([[-1, 0, 1], [2, 7, MAX_SIZE]]))
    symbols = [Var("s_v3"), Var("s_v4")]
    assert value.elements("s") == [const(-1), const(0), const(1), *symbols, const(MAX_SIZE)]
    assert value.places() == (3, 4)
    assert value.form() == (-1, 0, 1, -1000, -1000, MAX_SIZE)
    assert shape_carrier(value.array, value.places()).shape == (2, 7, 0)


def test_what_can_be_sizes() -> None:
    assert can_be_sizes(np.array([3, 4], np.int32))
    assert not can_be_sizes(np.array([3.0]))
    assert not can_be_sizes(np.ones(65, np.int64))
    assert not can_be_sizes(np.full(17, 5))
