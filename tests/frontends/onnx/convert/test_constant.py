"""Constant nodes in all their forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from tests.frontends.onnx.onnx_ops import run_onnx
from tilewright.core.errors import UnsupportedError


@pytest.mark.parametrize(
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


def test_unsupported_form() -> None:
    with pytest.raises(UnsupportedError, match="no supported form"):
        run_onnx("Constant", value_string="text")
