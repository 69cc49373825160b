from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_with_dims import exprs, run_op
from tilewright.core.errors import TypeCheckError
from tilewright.ops.tensor.padding import PadAttrs

RNG = np.random.default_rng(2)
NUMPY_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}


def pad(before: tuple, after: tuple, mode: str = "constant", value: float = 0) -> PadAttrs:
    return PadAttrs(exprs(*before), exprs(*after), mode, value)


@for_each("mode", NUMPY_MODES)
@for_each(
    ("before", "after"), [((1, 0), (2, 3)), ((0, 0), (0, 1)), ((2, 3), (0, 0)), ((7, 9), (8, 11))]
)
def test_pad(mode: str, before: tuple[int, int], after: tuple[int, int]) -> None:
    x = RNG.standard_normal((3, 4)).astype(np.float32)
    expected = np.pad(x, tuple(zip(before, after, strict=True)), NUMPY_MODES[mode])
    found = run_op("pad", x, attrs=pad(before, after, mode))
    np.testing.assert_array_equal(found, expected)
    symbolic = run_op("pad", x, attrs=pad(before, after, mode), dims=[("N", "M")])
    np.testing.assert_array_equal(symbolic, expected)


@for_each("mode", NUMPY_MODES)
def test_a_single_element(mode: str) -> None:
    x = np.array([7.0])
    found = run_op("pad", x, attrs=pad((2,), (3,), mode))
    np.testing.assert_array_equal(found, np.pad(x, (2, 3), NUMPY_MODES[mode]))


@for_each("mode", NUMPY_MODES)
def test_negative_amounts_cut(mode: str) -> None:
    x = RNG.standard_normal((5, 6))
    found = run_op("pad", x, attrs=pad((-1, 1), (-2, -3), mode))
    np.testing.assert_array_equal(found, np.pad(x[1:-2, :], ((0, 0), (1, 0)), mode)[:, :-3])


@for_each("dtype", [np.float64, np.int8, np.bool_, np.uint16])
def test_value(dtype: type) -> None:
    x = np.ones((2, 0, 3), dtype)
    fixed = run_op("pad", x, attrs=pad((0, 1, 1), (0, 0, 1), value=1))
    given = run_op("pad", x, np.ones((), dtype), attrs=pad((0, 1, 1), (0, 0, 1)))
    np.testing.assert_array_equal(fixed, np.ones((2, 1, 5), dtype))
    np.testing.assert_array_equal(given, np.ones((2, 1, 5), dtype))


def test_infinite_value() -> None:
    found = run_op("pad", np.zeros(1), attrs=pad((1,), (0,), value=-np.inf))
    np.testing.assert_array_equal(found, [-np.inf, 0])


def test_refusals() -> None:
    with pytest.raises(TypeCheckError, match="one amount"):
        run_op("pad", np.ones((2, 2)), attrs=pad((1,), (1,)))
    with pytest.raises(TypeCheckError, match="no mode"):
        run_op("pad", np.ones(2), attrs=pad((1,), (1,), "mirror"))
    with pytest.raises(TypeCheckError, match="cut away"):
        run_op("pad", np.ones(2), attrs=pad((-2,), (-1,)))
    with pytest.raises(TypeCheckError, match="no elements to repeat"):
        run_op("pad", np.ones(0), attrs=pad((1,), (0,), "edge"))
    with pytest.raises(TypeCheckError, match="cannot be padded with"):
        run_op("pad", np.ones(2), np.ones(1, np.int32), attrs=pad((1,), (0,)))
