"""Features of ai.onnx.ml, against onnxruntime where it has them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.convert.ml.ml_node import check_ml, check_texts, run_ml
from tilewright.core.errors import FrontendError

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
    with pytest.raises(FrontendError, match="no categories"):
        run_ml("OneHotEncoder", [x], cats_strings=["a"])
    texts = np.array([["a", "b"], ["d", "a"]], object)
    check_texts("OneHotEncoder", [texts], cats_strings=["a", "b", "c"], zeros=1)
