from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.arith.text import parse_expr
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import ExecutionError
from tilewright.ir.tensor.evaluator import Evaluator

X = np.arange(6, dtype=np.float32).reshape(2, 3)
P = np.array([2, 0, 9])


def value(text: str) -> np.ndarray:
    grid = {"i": np.arange(2).reshape(2, 1), "j": np.arange(3).reshape(1, 3), "N": np.array(3)}
    evaluator = Evaluator(grid, {"x": X, "p": P, "none": np.zeros((0, 3), np.float32)}, 2)
    return evaluator.value(parse_expr(text, {"x": F32, "p": I64, "none": F32}))


def test_only_the_dimensions_that_matter_are_computed():
    assert value("i * 2 + N").shape == (2, 1)
    assert value("exp(x[0, j])").shape == (1, 3)


def test_loads():
    np.testing.assert_array_equal(value("x[i, j]"), X)
    np.testing.assert_array_equal(value("x[1 - i, j]"), X[::-1])
    np.testing.assert_array_equal(value("x[i, p[j ? j < 2]]"), X[:, [2, 0, 0]])


def test_masks_keep_from_reading():
    np.testing.assert_array_equal(value("x[i, j + 1 ? j < 2]"), [[1, 2, 0], [4, 5, 0]])
    np.testing.assert_array_equal(value("x[i, p[j] ? j < 2]"), [[2, 0, 0], [5, 3, 0]])
    # Also the loads inside an index are read only where the mask holds.
    np.testing.assert_array_equal(value("x[i, p[j + 9] ? j < 0]"), np.zeros((2, 3)))
    assert not value("none[i, j ? j < 0]").any()


@for_each("text", ["x[i, j + 1]", "x[i - 1, j]", "x[i, p[j]]", "x[i, j + 1 ? i < 1]"])
def test_reading_outside(text):
    with pytest.raises(ExecutionError, match="reads outside 'x' of shape"):
        value(text)


def test_unknown_sizes():
    with pytest.raises(ExecutionError, match="no value for the size M"):
        value("i + M")
