from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_with_dims import run_op
from tilewright.arith.expr import Var, const
from tilewright.core.errors import TypeCheckError
from tilewright.ops.tensor.topk import TopKAttrs

RNG = np.random.default_rng(5)


def expected(x: np.ndarray, k: int, axis: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    keys = -x.astype(np.float64) if largest else x.astype(np.float64)
    order = np.take(np.argsort(keys, axis, kind="stable"), range(k), axis)
    return np.take_along_axis(x, order, axis), order


@for_each("largest", [True, False])
@for_each("axis", [0, 1, -1])
@for_each("k", [0, 1, 3, 4])
@for_each("dtype", [np.float32, np.int64, np.uint8])
def test_topk_keeps_the_order_of_equals(largest: bool, axis: int, k: int, dtype: type) -> None:
    x = RNG.integers(0, 4, (4, 7, 5)).astype(dtype)
    values, indices = run_op("topk", x, attrs=TopKAttrs(const(k), axis, largest))
    wanted_values, wanted_indices = expected(x, k, axis, largest)
    np.testing.assert_array_equal(values, wanted_values)
    np.testing.assert_array_equal(indices, wanted_indices)


def test_a_whole_row_is_sorted() -> None:
    x = RNG.standard_normal(33)
    values, indices = run_op("topk", x, attrs=TopKAttrs(const(33), 0, False))
    np.testing.assert_array_equal(values, np.sort(x))
    np.testing.assert_array_equal(indices, np.argsort(x))


def test_symbolic_sizes() -> None:
    x = RNG.standard_normal((3, 9))
    attrs = TopKAttrs(Var("K"), -1, True)
    values, _ = run_op("topk", x, attrs=attrs, dims=[("N", "M")], sizes={"K": 4})
    np.testing.assert_array_equal(values, -np.sort(-x)[:, :4])


def test_nan_is_greatest() -> None:
    x = np.array([1, np.nan, np.inf, np.nan, -np.inf], np.float32)
    values, indices = run_op("topk", x, attrs=TopKAttrs(const(3), 0, True))
    np.testing.assert_array_equal(indices, [1, 3, 2])
    np.testing.assert_array_equal(values, x[indices])
    _, least = run_op("topk", x, attrs=TopKAttrs(const(4), 0, False))
    np.testing.assert_array_equal(least, [4, 0, 2, 1])


def test_refusals() -> None:
    with pytest.raises(TypeCheckError, match="6 elements"):
        run_op("topk", np.ones(5), attrs=TopKAttrs(const(6)))
    with pytest.raises(TypeCheckError, match="cannot be ordered"):
        run_op("topk", np.ones(()), attrs=TopKAttrs(const(1)))
