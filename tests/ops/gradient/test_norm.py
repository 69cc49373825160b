"""Gradients of normalizations and softmax's relatives against differences."""

from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule, pulled_with
from tilewright.ops.reduction.channel_norm import EpsilonAttrs, GroupNormAttrs
from tilewright.ops.reduction.norm import (
    LayerNormAttrs,
    LpNormAttrs,
    LrnAttrs,
    MeanVarianceAttrs,
    RmsNormAttrs,
)
from tilewright.ops.reduction.softmax import AxisAttrs, SoftmaxAttrs

RNG = np.random.default_rng(2)
X = RNG.uniform(-1, 2, (2, 3, 4))
SCALE, BIAS = RNG.uniform(0.5, 1, (4,)), RNG.uniform(-1, 1, (3, 4))


def channels(count: int) -> np.ndarray:
    return RNG.uniform(0.5, 1.5, (count,))


def test_layer_norm() -> None:
    check_rule("layer_norm", X, attrs=LayerNormAttrs(-1))
    check_rule("layer_norm", X, SCALE, BIAS, attrs=LayerNormAttrs(-1))
    check_rule("layer_norm", X, None, SCALE, attrs=LayerNormAttrs(1))


def test_statistics_that_are_results() -> None:
    check_rule("layer_norm", X, SCALE, attrs=LayerNormAttrs(-2, 1e-5, stats=True))


def test_rms_norm() -> None:
    check_rule("rms_norm", X, SCALE, attrs=RmsNormAttrs(-1))
    check_rule("rms_norm", X, attrs=RmsNormAttrs(1))


def test_over_any_axes() -> None:
    check_rule("mean_variance_norm", X, attrs=MeanVarianceAttrs((0, 2)))
    check_rule("mean_variance_norm", X, attrs=MeanVarianceAttrs((-1,), 0.1))


def test_equal_elements_have_no_deviation() -> None:
    (dx,) = pulled_with("mean_variance_norm", MeanVarianceAttrs((0,), 1.0), np.ones(3))
    np.testing.assert_array_equal(dx, np.zeros(3))


@for_each("p", [1, 2, 3])
def test_lp_norm(p: int) -> None:
    check_rule("lp_norm", X, attrs=LpNormAttrs(1, p))


def test_a_row_of_zeros_stays() -> None:
    (dx,) = pulled_with("lp_norm", LpNormAttrs(0, 2), np.zeros((3, 1)))
    np.testing.assert_array_equal(dx, np.zeros((3, 1)))


def test_local_response() -> None:
    x = RNG.uniform(-1, 1, (2, 5, 2))
    check_rule("lrn", x, attrs=LrnAttrs(3, 0.1))
    check_rule("lrn", x, attrs=LrnAttrs(4, 0.1, 0.5, 2.0))
    check_rule("lrn", x[:, :2].copy(), attrs=LrnAttrs(9, 0.1))


def test_channels() -> None:
    check_rule("batch_norm", X, *(channels(3) for _ in range(4)), attrs=EpsilonAttrs())
    check_rule("instance_norm", X, channels(3), channels(3), attrs=EpsilonAttrs())
    x = RNG.uniform(-1, 1, (2, 4, 3))
    check_rule("group_norm", x, channels(4), channels(4), attrs=GroupNormAttrs(2))


@for_each("masked", ["nan", "zero", "finite"])
def test_softmax(masked: str) -> None:
    check_rule("softmax", X, attrs=SoftmaxAttrs(1, masked))


def test_log_softmax_and_hardmax() -> None:
    check_rule("log_softmax", X, attrs=AxisAttrs(0))
    check_rule("hardmax", X, attrs=AxisAttrs(-1), without=(0,))
