"""Transformations of scores, against their definitions."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.ml.ml_node import check_ml, run_ml
from tilewright.core.errors import FrontendError

X = np.array([[0.5, -2.0, 0.0], [0.25, 0.75, 1.5]], "f4")
# Scores that are the features themselves.
IDENTITY = {"coefficients": np.eye(3).reshape(-1).tolist(), "targets": 3}


@for_each("name", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_transformations(name: str) -> None:
    check_ml("LinearRegressor", [X], post_transform=name, **IDENTITY)


def test_probit() -> None:
    chances = np.array([[0.5, 0.1, 0.975]], "f4")
    (found,) = run_ml("LinearRegressor", [chances], post_transform="PROBIT", **IDENTITY)
    expected = [NormalDist().inv_cdf(float(p)) for p in chances[0]]
    np.testing.assert_allclose(found[0], expected, rtol=3e-3, atol=1e-6)


def test_unknown_transformation() -> None:
    with pytest.raises(FrontendError, match="post_transform is 'EXP'"):
        run_ml("LinearRegressor", [X], post_transform="EXP", **IDENTITY)
