from __future__ import annotations

import numpy as np

from tilewright.core.numeric_error import named, relative_error


def test_relative_to_the_largest_magnitude() -> None:
    a = {"y": np.array([1.0, np.inf, -4.0])}
    assert relative_error(a, a) == 0
    assert relative_error({"y": np.array([1.5, np.inf, -4.0])}, a) == 0.125
    assert relative_error({}, {}) == 0


def test_what_cannot_be_compared_is_infinitely_far() -> None:
    a = {"y": np.array([1.0, np.inf, np.nan])}
    assert relative_error({"y": np.array([1.0, 1.0, np.nan])}, a) == float("inf")
    assert relative_error({"y": np.array([1.0])}, a) == float("inf")
    assert relative_error({"y": np.array([1.0, np.inf, np.nan])}, a) == 0
    assert relative_error({"y": np.empty(0)}, {"y": np.empty(0)}) == 0


def test_the_worst_output_counts() -> None:
    wanted = {"a": np.ones(2), "b": np.full(2, 10.0)}
    assert relative_error({"a": np.ones(2), "b": np.array([10.0, 9.0])}, wanted) == 0.1


def test_names_in_order() -> None:
    assert list(named([1, 2], ["a", "b"])) == ["a", "b"]
    assert named({"x": np.ones(1)}, ["y"]).keys() == {"x"}
