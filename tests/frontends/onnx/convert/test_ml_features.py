"""Features of ai.onnx.ml, against onnxruntime where it has them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from tests.frontends.onnx.convert.ml_node import check_ml, run_ml
from tilewright.core.errors import FrontendError, UnsupportedError

X = np.random.default_rng(17).standard_normal((5, 3)).astype("f4")


def test_columns() -> None:
    check_ml("ArrayFeatureExtractor", [X, np.array([2, 0])])
    check_ml("ArrayFeatureExtractor", [X[0], np.array([[1]])])
    columns = [X, X[:, 0], X[:, :2].astype("i8")]
    (found,) = run_ml("FeatureVectorizer", columns, inputdimensions=[3, 1, 2])
    expected = np.concatenate([X, X[:, :1], X[:, :2].astype("i8")], 1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert run_ml("FeatureVectorizer", [X], inputdimensions=[3])[0].shape == (5, 3)


def test_scaling() -> None:
    check_ml("Binarizer", [X], threshold=0.25)
    check_ml("Scaler", [X], offset=[1.0, 2, 3], scale=[0.5, 2, 1])
    check_ml("Scaler", [X.astype("i8")], offset=[1.0], scale=[0.5])
    for norm in ("MAX", "L1", "L2"):
        check_ml("Normalizer", [np.abs(X)], norm=norm)
    with pytest.raises(FrontendError, match="norm is 'L3'"):
        run_ml("Normalizer", [X], norm="L3")


def test_imputing() -> None:
    x = X.copy()
    x[1, 1] = x[0, 2] = np.nan
    missing = {"replaced_value_float": float("nan")}
    check_ml("Imputer", [x], imputed_value_floats=[1.0, 2, 3], **missing)
    check_ml("Imputer", [x], imputed_value_floats=[7.0], **missing)
    integers = np.array([[1, -1], [-1, 2]])
    check_ml("Imputer", [integers], imputed_value_int64s=[5, 6], replaced_value_int64=-1)
    with pytest.raises(FrontendError, match="no value"):
        run_ml("Imputer", [x])


def test_categories() -> None:
    x = np.array([[3, 9], [4, 3]])
    (found,) = run_ml("OneHotEncoder", [x], cats_int64s=[3, 4, 5], zeros=1)
    np.testing.assert_array_equal(found, (x[..., None] == [3, 4, 5]).astype("f4"))
    with pytest.raises(UnsupportedError, match="texts"):
        run_ml("OneHotEncoder", [x], cats_strings=["a"])


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
    with pytest.raises(UnsupportedError, match="keys that are texts"):
        run_ml("LabelEncoder", [x], opset=2, keys_strings=["a"], values_int64s=[1])
