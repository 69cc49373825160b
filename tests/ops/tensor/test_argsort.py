"""The order of rows against NumPy: interpreted and native."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native
from tests.for_each import for_each
from tests.ops.run_with_dims import run_op, type_of
from tilewright.core.errors import TypeCheckError
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.argsort import ArgsortAttrs

RNG = np.random.default_rng(3)


def expected(x: np.ndarray, descending: bool) -> np.ndarray:
    sign = -1 if descending else 1
    return np.array([np.lexsort(sign * rows.T[::-1].astype(np.float64)) for rows in x])


@for_each("descending", [True, False])
@for_each("shape", [(2, 9, 3), (1, 1, 2), (3, 16, 1), (2, 0, 2)])
@for_each("dtype", [np.float32, np.int64, np.uint8])
def test_equal_rows_stay_as_they_are(shape: tuple[int, ...], dtype: type, descending: bool) -> None:
    x = RNG.integers(0, 3, shape).astype(dtype)
    found = run_op("argsort_rows", x, attrs=ArgsortAttrs(descending))
    np.testing.assert_array_equal(found, expected(x, descending).reshape(shape[:2]))


def test_nan_is_greatest() -> None:
    x = np.array([np.nan, 1, np.inf, np.nan, -np.inf], np.float32).reshape(1, 5, 1)
    np.testing.assert_array_equal(
        run_op("argsort_rows", x, attrs=ArgsortAttrs()), [[4, 1, 2, 0, 3]]
    )
    down = run_op("argsort_rows", x, attrs=ArgsortAttrs(True))
    np.testing.assert_array_equal(down, [[0, 3, 2, 1, 4]])


@pytest.mark.parametrize("size", [1, 7, 64, 100])
def test_native(size: int) -> None:
    x = RNG.integers(0, 9, (3, size, 2)).astype(np.int32)
    g = GraphBuilder("g")
    rows = g.input("x", type_of(x, ("B", "N", 2)))
    check_native(g.graph(g.add("argsort_rows", rows)), {"x": x}, threads=2).close()


def test_rows_of_truth_values_have_no_order() -> None:
    with pytest.raises(TypeCheckError, match="can be ordered"):
        run_op("argsort_rows", np.ones((1, 2, 3), np.bool_))
