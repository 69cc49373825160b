"""Sparse tensors made dense."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import SparseTensorProto, numpy_helper

from tests.for_each import for_each
from tilewright.core.errors import FrontendError, UnsupportedError
from tilewright.frontends.onnx.model.sparse import dense
from tilewright.frontends.onnx.model.tensors import TensorReader


def sparse(values: np.ndarray, indices: np.ndarray, *dims: int) -> SparseTensorProto:
    return SparseTensorProto(
        values=numpy_helper.from_array(values, "w"),
        indices=numpy_helper.from_array(indices),
        dims=dims,
    )


def array(values: np.ndarray, indices: list[int] | list[list[int]], *dims: int) -> np.ndarray:
    return dense(sparse(values, np.array(indices, np.int64), *dims), TensorReader(None))


def test_both_forms_of_indices() -> None:
    wanted = np.array([[0, 0, 1], [2, 0, 0]], np.float32)
    values = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(array(values, [2, 3], 2, 3), wanted)
    np.testing.assert_array_equal(array(values, [[0, 2], [1, 0]], 2, 3), wanted)
    np.testing.assert_array_equal(array(values[:0], [], 2), np.zeros(2, np.float32))
    assert array(np.array(["a"], object), [1], 2).tolist() == ["", "a"]


@for_each("indices", [[6], [-1], [[0, 3]], [[0, 1, 2]], [0, 1]])
def test_indices_that_do_not_fit(indices: list[int]) -> None:
    with pytest.raises(FrontendError, match="sparse tensor 'w'"):
        array(np.ones(1, np.float32), indices, 2, 3)


def test_shapes_that_cannot_be() -> None:
    with pytest.raises(FrontendError, match="shape is"):
        array(np.ones(1, np.float32), [0], -2)
    with pytest.raises(UnsupportedError, match="has 1000000000000 elements"):
        array(np.ones(1, np.float32), [0], 10**6, 10**6)
