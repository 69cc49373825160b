from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import const
from tilewright.ops.linalg.lu import LuAttrs, RowOrderAttrs

RNG = np.random.default_rng(1)


@for_each("shape", [(1, 1), (5, 5), (2, 3, 7, 4), (4, 7), (0, 0), (3, 0, 2), (0, 3, 3)])
def test_the_product_of_the_factors_is_the_matrix(shape: tuple[int, ...]) -> None:
    x = RNG.normal(size=shape)
    found, pivots, info = run_op("lu", x, attrs=LuAttrs())
    count = min(shape[-2:])
    lower = np.tril(found[..., :count], -1) + np.eye(shape[-2], count)
    order = run_op("row_order", pivots, attrs=RowOrderAttrs(const(shape[-2])))
    rows = np.take_along_axis(x, order[..., None], -2)
    np.testing.assert_allclose(lower @ np.triu(found[..., :count, :]), rows, atol=1e-12)
    assert np.all(abs(lower) <= 1)
    assert not info.any()


def test_without_exchanges() -> None:
    x = RNG.normal(size=(5, 5)) + 9 * np.eye(5)
    x[0, 0] = 0.01
    found, pivots, _ = run_op("lu", x, attrs=LuAttrs(pivots=False))
    lower = np.tril(found, -1) + np.eye(5)
    np.testing.assert_allclose(lower @ np.triu(found), x, rtol=1e-8, atol=1e-10)
    assert pivots.tolist() == [1, 2, 3, 4, 5]


def test_a_pivot_that_is_zero() -> None:
    x = np.array([[[1.0, 2], [2, 4]], [[0, 1], [0, 2]], [[1, 2], [3, 4]]])
    found, _, info = run_op("lu", x, attrs=LuAttrs())
    assert info.tolist() == [2, 1, 0]
    assert np.isfinite(found).all()
