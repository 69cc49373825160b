from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.ir.tensor.grid_gather import gather

ARRAY = np.arange(5 * 6 * 7).reshape(5, 6, 7)


def along(values: list[int], dim: int, rank: int = 4) -> np.ndarray:
    return np.array(values).reshape([-1 if d == dim else 1 for d in range(rank)])


CONST = np.array(2)
CASES = {
    "in order": ((along([0, 1, 2], 0), along([1, 2], 1), along([3, 4, 5], 2)), True),
    "transposed": ((along([0, 1, 2], 3), along([1, 2], 0), along([3, 4, 5], 1)), True),
    "strided": ((along([0, 2, 4], 0), CONST, along([1, 4], 3)), True),
    "constants": ((CONST, CONST, CONST), True),
    "backward": ((along([2, 1, 0], 0), along([1, 2], 1), CONST), False),
    "diagonal": ((along([0, 1, 2], 0), along([0, 1, 2], 0), CONST), False),
    "window": ((along([0, 1], 0) + along([0, 1, 2], 1), CONST, CONST), False),
    "irregular": ((along([0, 1, 4], 0), CONST, CONST), False),
    "repeated": ((along([0, 0], 0), CONST, CONST), False),
}


@for_each("name", CASES)
def test_gather(name):
    indices, is_view = CASES[name]
    result = gather(ARRAY, indices, 4)
    full = np.broadcast_shapes((1,) * 4, *(i.shape for i in indices))
    expected = ARRAY[tuple(np.broadcast_to(i, full) for i in indices)]
    np.testing.assert_array_equal(np.broadcast_to(result, full), expected)
    assert np.shares_memory(result, ARRAY) == is_view


def test_no_dimensions_and_no_elements():
    assert gather(np.array(3), (), 0) == 3
    assert gather(ARRAY, (along([], 0).astype(int), CONST, CONST), 4).size == 0
