"""Linear models, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.ml.ml_node import check_ml, check_texts, run_ml
from tilewright.core.errors import FrontendError

RNG = np.random.default_rng(18)
X = RNG.standard_normal((6, 4)).astype("f4")


def _weights(count: int) -> dict[str, list[float]]:
    return {
        "coefficients": RNG.standard_normal(4 * count).tolist(),
        "intercepts": RNG.standard_normal(count).tolist(),
    }


@for_each("x", [X, (X * 9).astype("i8")])
def test_regression(x: np.ndarray) -> None:
    if x.dtype == np.float32:
        check_ml("LinearRegressor", [x], targets=3, **_weights(3))
    weights = {"coefficients": [1.0, 2, 3, 4]}
    np.testing.assert_allclose(
        run_ml("LinearRegressor", [x], **weights)[0][:, 0], x @ [1, 2, 3, 4], rtol=1e-5, atol=1e-5
    )


@for_each("name", ["NONE", "LOGISTIC", "SOFTMAX"])
@for_each("classes", [2, 3])
def test_classes(classes: int, name: str) -> None:
    labels = [5, 7, 9][:classes]
    options = {"classlabels_ints": labels, "post_transform": name, **_weights(classes)}
    check_ml("LinearClassifier", [X], outputs=2, **options)


def test_one_score_for_two_classes() -> None:
    options = {"classlabels_ints": [5, 7], "post_transform": "LOGISTIC", **_weights(1)}
    check_ml("LinearClassifier", [X], outputs=2, **options)


def test_one_class() -> None:
    options = {"coefficients": [1.0, 0, 0, 0], "intercepts": [0.0], "classlabels_ints": [4]}
    label, scores = run_ml("LinearClassifier", [X], outputs=2, **options)
    np.testing.assert_array_equal(label, np.where(X[:, 0] >= 0, 4, 0))
    np.testing.assert_array_equal(scores, X[:, :1])


def test_labels_that_are_texts() -> None:
    for labels in (["a", "b"], ["x", "y", "z"]):
        options = {"classlabels_strings": labels, "outputs": 2, **_weights(len(labels))}
        check_texts("LinearClassifier", [X], **options)
    with pytest.raises(FrontendError, match="no labels"):
        run_ml("LinearClassifier", [X], outputs=2, **_weights(2))
