from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_with_dims import run_op
from tilewright.core.errors import TypeCheckError
from tilewright.ops.tensor.scatter import REDUCTIONS, ScatterElementsAttrs, ScatterNdAttrs

RNG = np.random.default_rng(4)
APPLY = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": min,
    "max": max,
}


@for_each("reduction", REDUCTIONS)
@for_each("axis", [0, 1, -1])
def test_scatter_elements(reduction: str, axis: int) -> None:
    data = RNG.integers(-9, 9, (4, 5, 3)).astype(np.float32)
    indices = RNG.integers(-3, 3, (2, 5, 3)).astype(np.int32)
    updates = RNG.integers(-9, 9, indices.shape).astype(np.float32)
    attrs = ScatterElementsAttrs(axis, reduction)
    expected = data.copy()
    for place in np.ndindex(*indices.shape):
        target = list(place)
        target[axis] = indices[place]
        expected[tuple(target)] = APPLY[reduction](expected[tuple(target)], updates[place])
    found = run_op("scatter_elements", data, indices, updates, attrs=attrs)
    np.testing.assert_array_equal(found, expected)


@for_each("reduction", REDUCTIONS)
@for_each("shape", [(6, 1), (2, 3, 2), (3,), (4, 3), (0, 2)])
def test_scatter_nd(reduction: str, shape: tuple[int, ...]) -> None:
    data = RNG.integers(-9, 9, (4, 5, 3))
    indices = RNG.integers(-3, 3, shape)
    updates = RNG.integers(-9, 9, (*shape[:-1], *data.shape[shape[-1] :]))
    expected = data.copy()
    for place in np.ndindex(*shape[:-1]):
        target = tuple(indices[place])
        old, new = expected[target], updates[place]
        expected[target] = np.vectorize(APPLY[reduction])(old, new)
    found = run_op("scatter_nd", data, indices, updates, attrs=ScatterNdAttrs(reduction))
    np.testing.assert_array_equal(found, expected)


def test_symbolic_sizes() -> None:
    data, indices = np.zeros((4, 3)), np.array([[1], [1], [-1]])
    updates = RNG.standard_normal((3, 3))
    dims = [("N", "M"), ("K", 1), ("K", "M")]
    found = run_op("scatter_nd", data, indices, updates, attrs=ScatterNdAttrs("add"), dims=dims)
    np.testing.assert_allclose(
        found, [np.zeros(3), updates[0] + updates[1], np.zeros(3), updates[2]]
    )


def test_refusals() -> None:
    ones, where = np.ones((2, 2)), np.zeros((2, 2), np.int64)
    with pytest.raises(TypeCheckError, match="no reduction"):
        run_op("scatter_elements", ones, where, ones, attrs=ScatterElementsAttrs(0, "sub"))
    with pytest.raises(TypeCheckError, match="differ in shape"):
        run_op("scatter_elements", ones, where, ones[:1], attrs=ScatterElementsAttrs(0))
    with pytest.raises(TypeCheckError, match="operands have types"):
        run_op("scatter_elements", ones, where, where, attrs=ScatterElementsAttrs(0))
    with pytest.raises(TypeCheckError, match="do not fit"):
        run_op("scatter_nd", ones, where, ones, attrs=ScatterNdAttrs())
