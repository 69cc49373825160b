"""Support vector machines, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.ml.ml_node import check_ml, check_texts, run_ml
from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.convert.ml.svm import KERNELS

RNG = np.random.default_rng(19)
X = RNG.standard_normal((6, 4)).astype("f4")


def _machine(kernel: str, vectors: int, rows: int = 1) -> dict[str, object]:
    return {
        "kernel_type": kernel,
        "kernel_params": [0.5, 0.1, 3.0],
        "coefficients": RNG.standard_normal(rows * vectors).tolist(),
        "support_vectors": RNG.standard_normal(4 * vectors).tolist(),
    }


@for_each("kernel", KERNELS)
@for_each("one_class", [0, 1])
def test_regression(kernel: str, one_class: int) -> None:
    options = {**_machine(kernel, 5), "n_supports": 5, "rho": [0.3], "one_class": one_class}
    check_ml("SVMRegressor", [X], **options)


@for_each("kernel", KERNELS)
def test_classes(kernel: str) -> None:
    options = _machine(kernel, 6, 2)
    options |= {"vectors_per_class": [2, 3, 1], "rho": [0.3, -0.1, 0.2]}
    check_ml("SVMClassifier", [X], outputs=2, classlabels_ints=[4, 5, 6], **options)


@for_each("name", ["NONE", "LOGISTIC"])
def test_two_classes(name: str) -> None:
    options = {**_machine("RBF", 5), "vectors_per_class": [2, 3], "rho": [-0.3]}
    options |= {"classlabels_ints": [4, 5], "post_transform": name}
    check_ml("SVMClassifier", [X], outputs=2, **options)


def test_linear_classes() -> None:
    options = {"coefficients": RNG.standard_normal(12).tolist(), "rho": [0.3]}
    options |= {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0]}
    check_ml("SVMClassifier", [X], outputs=2, classlabels_ints=[4, 5, 6], **options)


@for_each("classes", [2, 3])
def test_probabilities(classes: int) -> None:
    pairs = classes * (classes - 1) // 2
    options = {**_machine("RBF", 6, classes - 1), "vectors_per_class": [2, 4, 0][:classes]}
    options |= {"rho": RNG.standard_normal(pairs).tolist()}
    options |= {"prob_a": [-1.5] * pairs, "prob_b": RNG.standard_normal(pairs).tolist()}
    labels = [4, 5, 6][:classes]
    check_ml("SVMClassifier", [X], outputs=2, classlabels_ints=labels, **options)


def test_refusals() -> None:
    options = {**_machine("RBF", 5), "vectors_per_class": [2, 3], "rho": [-0.3]}
    options["classlabels_ints"] = [4, 5]
    texts = {k: v for k, v in options.items() if k != "classlabels_ints"}
    check_texts("SVMClassifier", [X], outputs=2, classlabels_strings=["a", "b"], **texts)
    with pytest.raises(FrontendError, match="kernel_type is 'WAVE'"):
        run_ml("SVMClassifier", [X], outputs=2, **{**options, "kernel_type": "WAVE"})
