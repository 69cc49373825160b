"""Constant nodes in all their forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import tilewright as tw
from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import node_model
from tests.frontends.onnx.onnx_ops import run_onnx
from tilewright.core.errors import UnsupportedError


@for_each(
    ("attrs", "expected"),
    [
        ({"value_float": 2.5}, np.array(2.5, np.float32)),
        ({"value_floats": [1.0, 2.0]}, np.array([1, 2], np.float32)),
        ({"value_int": -3}, np.array(-3)),
        ({"value_ints": [4, 5]}, np.array([4, 5])),
        (
            {"value": numpy_helper.from_array(np.eye(3, dtype=np.float16))},
            np.eye(3, dtype=np.float16),
        ),
    ],
)
def test_forms(attrs: dict[str, Any], expected: np.ndarray) -> None:
    (found,) = run_onnx("Constant", **attrs)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_texts() -> None:
    for attrs, wanted in (
        ({"value_string": "t"}, "t"),
        ({"value_strings": ["a", "b"]}, ["a", "b"]),
    ):
        with tw.compile(node_model("Constant", [], **attrs), threads=1, cache=False) as model:
            assert model().tolist() == wanted


def test_sparse() -> None:
    values = numpy_helper.from_array(np.array([5.0], np.float32))
    indices = numpy_helper.from_array(np.array([[1, 0]]))
    sparse = helper.make_sparse_tensor(values, indices, [2, 2])
    (found,) = run_onnx("Constant", sparse_value=sparse)
    np.testing.assert_array_equal(found, [[0, 0], [5, 0]])


def test_no_value() -> None:
    with pytest.raises(UnsupportedError, match="no supported form"):
        run_onnx("Constant")
