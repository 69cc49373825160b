"""Tables of labels, against onnxruntime where it has them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from tests.frontends.onnx.convert.ml.ml_node import check_ml, check_texts, run_ml
from tilewright.core.errors import FrontendError

TEXTS = np.array([["a", "b"], ["", "c"]], object)


def test_labels() -> None:
    x = np.array([[3, 9], [4, 3]])
    options = {"keys_int64s": [3, 4], "values_floats": [0.5, 1.5]}
    check_ml("LabelEncoder", [x], opset=2, default_float=-2.0, **options)
    check_ml("LabelEncoder", [x], opset=2, **options)
    floats = np.array([1.5, np.nan, 7], "f4")
    options = {"keys_floats": [1.5, float("nan")], "values_int64s": [4, 5]}
    (found,) = run_ml("LabelEncoder", [floats], opset=4, **options)
    np.testing.assert_array_equal(found, [4, 5, -1])
    tensors = {
        "keys_tensor": numpy_helper.from_array(np.array([3, 4])),
        "values_tensor": numpy_helper.from_array(np.array([1, 2], "i2")),
        "default_tensor": numpy_helper.from_array(np.array([9], "i2")),
    }
    (found,) = run_ml("LabelEncoder", [x], opset=4, **tensors)
    np.testing.assert_array_equal(found, np.array([[1, 9], [2, 1]], "i2"))
    with pytest.raises(FrontendError, match="keys that are object for an input that is i64"):
        run_ml("LabelEncoder", [x], opset=2, keys_strings=["a"], values_int64s=[1])
    with pytest.raises(FrontendError, match="1 keys for 2 values"):
        run_ml("LabelEncoder", [x], opset=2, keys_int64s=[1], values_int64s=[1, 2])


def test_texts() -> None:
    keys = {"keys_strings": ["a", "b", "a"]}
    check_texts("LabelEncoder", [TEXTS], opset=2, values_int64s=[5, 6, 7], **keys)
    check_texts("LabelEncoder", [TEXTS], opset=2, values_floats=[0.5, 1.5, 3], **keys)
    check_texts("LabelEncoder", [TEXTS], opset=2, values_strings=["x", "y", "z"], **keys)
    numbers = {"keys_int64s": [1, 2], "values_strings": ["one", "two"], "default_string": "many"}
    check_texts("LabelEncoder", [np.array([2, 3, 1])], opset=2, **numbers)


def test_both_ways() -> None:
    classes = {"classes_strings": ["a", "b"], "default_int64": 9, "default_string": "none"}
    check_texts("LabelEncoder", [TEXTS], **classes)
    check_texts("LabelEncoder", [np.array([1, 4, 0])], **classes)
    names = {"cats_strings": ["a", "b"], "cats_int64s": [7, 3]}
    check_texts("CategoryMapper", [TEXTS], **names)
    check_texts("CategoryMapper", [np.array([3, 4])], **names)
