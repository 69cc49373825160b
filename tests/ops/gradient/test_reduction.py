"""Gradients of reductions and running sums against differences, with zeros and ties."""

from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule, pulled_with
from tilewright.ops.reduction.cumsum_rows import CumsumRowsAttrs
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.reduction.cumulative_extreme import CumulativeExtremeAttrs
from tilewright.ops.reduction.linear_recurrence import RecurrenceAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs

RNG = np.random.default_rng(1)
X = RNG.uniform(-1, 2, (2, 3, 4))
POSITIVE = RNG.uniform(0.2, 0.9, (3, 5))
WITH_ZEROS = X.copy()
WITH_ZEROS[0, 0, 0] = 0
WITH_ZEROS[1, :2, 1] = 0

REDUCTIONS = ("sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum_exp")


@for_each("keepdims", [False, True])
@for_each("axes", [(1,), (0, -1), (0, 1, 2)])
@for_each("op", REDUCTIONS)
def test_reductions(op: str, axes: tuple[int, ...], keepdims: bool) -> None:
    check_rule(f"reduce_{op}", X, attrs=ReduceAttrs(axes, keepdims))


@for_each("op", ("sum", "max", "prod", "sum_square", "log_sum_exp"))
def test_over_no_axes(op: str) -> None:
    check_rule(f"reduce_{op}", X, attrs=ReduceAttrs(()))


def test_logarithm_of_a_sum() -> None:
    check_rule("reduce_log_sum", POSITIVE, attrs=ReduceAttrs((0,)))
    check_rule("reduce_log_sum", POSITIVE, attrs=ReduceAttrs((1,), keepdims=False))


def test_products_with_zeros() -> None:
    check_rule("reduce_prod", WITH_ZEROS, attrs=ReduceAttrs((0, 2)))
    check_rule("reduce_prod", WITH_ZEROS, attrs=ReduceAttrs((1,)))


def test_equal_elements_share() -> None:
    x = np.array([[1.0, 3.0, 3.0]])
    (dx,) = pulled_with("reduce_max", ReduceAttrs((1,)), x)
    np.testing.assert_array_equal(dx, [[0, 0.5, 0.5]])


def test_a_norm_of_zero_has_no_slope() -> None:
    (dx,) = pulled_with("reduce_l2", ReduceAttrs((0,)), np.zeros(3))
    np.testing.assert_array_equal(dx, np.zeros(3))


@for_each("reverse", [False, True])
def test_running_logarithms(reverse: bool) -> None:
    check_rule("cumlogsumexp", X, attrs=ScanAttrs(1, reverse=reverse))


def test_running_logarithms_without_the_element_itself() -> None:
    x = X[0, 0]
    (dx,) = pulled_with("cumlogsumexp", ScanAttrs(0, exclusive=True), x)
    before = np.log(np.cumsum(np.exp(x)))[:-1]
    expected = [np.exp(x[i] - before[i:]).sum() for i in range(x.size)]
    np.testing.assert_allclose(dx, expected)


def test_running_logarithms_of_what_is_far_apart() -> None:
    x = np.array([-np.inf, -800.0, 700.0, 0.0, -np.inf])
    (dx,) = pulled_with("cumlogsumexp", ScanAttrs(0), x)
    np.testing.assert_allclose(dx, [0, 1, 3, 0, 0], atol=1e-300)


@for_each("largest", [False, True])
def test_running_extremes(largest: bool) -> None:
    check_rule("cumulative_extreme", X, attrs=CumulativeExtremeAttrs(1, largest))


def test_a_row_of_nothing() -> None:
    x = np.array([[-np.inf, -np.inf], [0.0, -np.inf]])
    (dx,) = pulled_with("reduce_log_sum_exp", ReduceAttrs((1,)), x)
    np.testing.assert_array_equal(dx, [[0, 0], [1, 0]])


@for_each("reverse", [False, True])
@for_each("exclusive", [False, True])
@for_each("axis", [0, 1, -1])
def test_running_sums_and_products(axis: int, exclusive: bool, reverse: bool) -> None:
    attrs = ScanAttrs(axis, exclusive, reverse)
    check_rule("cumsum", X, attrs=attrs)
    check_rule("cumprod", WITH_ZEROS, attrs=attrs)


@for_each("reverse", [False, True])
def test_linear_recurrence(reverse: bool) -> None:
    check_rule("linear_recurrence", X, X[::-1].copy(), attrs=RecurrenceAttrs(1, reverse))


def test_sums_of_rows_on_a_gpu() -> None:
    (dx,) = pulled_with("cumsum_rows", CumsumRowsAttrs(4, 1, 1, 1), POSITIVE)
    np.testing.assert_array_equal(dx, np.broadcast_to([5.0, 4, 3, 2, 1], (3, 5)))


def test_empty() -> None:
    check_rule("reduce_sum", np.zeros((0, 3)), attrs=ReduceAttrs((0,)))
    check_rule("reduce_prod", np.zeros((0, 3)), attrs=ReduceAttrs((0,)))
    check_rule("cumprod", np.zeros((0, 3)), attrs=ScanAttrs(0))
