from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.dtypes import C64, F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.image.grid_sample import PADDINGS, GridSampleAttrs
from tilewright.ops.image.interpolate import MODES
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(7)


def _identity_grid(*sizes: int) -> np.ndarray:
    """The centres of all elements, the last dimension first."""
    lines = [(2 * np.arange(n) + 1) / n - 1 for n in sizes]
    return np.stack(np.meshgrid(*lines, indexing="ij")[::-1], -1)[None].astype("f4")


@for_each("padding", PADDINGS)
@for_each("mode", MODES)
@for_each("shape", [(5,), (3, 4), (2, 3, 2)])
def test_centres_give_the_elements(shape: tuple[int, ...], mode: str, padding: str) -> None:
    x = RNG.standard_normal((1, 2, *shape)).astype("f4")
    found = run_op("grid_sample", x, _identity_grid(*shape), attrs=GridSampleAttrs(mode, padding))
    np.testing.assert_allclose(found, x, rtol=1e-4, atol=1e-5)


def test_a_position_between_elements() -> None:
    x = np.array([[[1.0, 2.0, 4.0]]], "f4")
    grid = np.array([[[-1.0], [-0.5], [0.5], [1.0]]], "f4")
    found = run_op("grid_sample", x, grid, attrs=GridSampleAttrs(align_corners=True))
    np.testing.assert_allclose(found[0, 0], [1, 1.5, 3, 4])


def test_far_outside() -> None:
    x = np.array([[[1.0, 2.0, 3.0]]], "f4")
    positions = np.array([-2, 4, -8, 8, -6], "f4")
    grid = ((2 * positions + 1) / 3 - 1).reshape(1, -1, 1).astype("f4")

    def sampled(padding: str) -> np.ndarray:
        return run_op("grid_sample", x, grid, attrs=GridSampleAttrs("nearest", padding))[0, 0]

    np.testing.assert_array_equal(sampled("zeros"), np.zeros(5))
    np.testing.assert_array_equal(sampled("border"), [1, 3, 1, 3, 1])
    around = np.concatenate([x[0, 0], x[0, 0, ::-1]])  # reflected at -0.5 and 2.5
    np.testing.assert_array_equal(sampled("reflection"), around[positions.astype(int) % 6])


@for_each("mode", MODES)
def test_infinite_positions_are_outside(mode: str) -> None:
    x = RNG.standard_normal((1, 1, 4)).astype("f4")
    grid = np.array([np.inf, -np.inf, 1e30], "f4").reshape(1, 3, 1)
    zeros = run_op("grid_sample", x, grid, attrs=GridSampleAttrs(mode, "zeros"))
    np.testing.assert_array_equal(zeros, np.zeros((1, 1, 3), "f4"))
    border = run_op("grid_sample", x, grid, attrs=GridSampleAttrs(mode, "border"))
    np.testing.assert_allclose(border[0, 0], x[0, 0, [-1, 0, -1]], rtol=1e-6)
    for attrs in (GridSampleAttrs(mode, p) for p in PADDINGS):  # no access outside
        assert run_op("grid_sample", x, grid * np.nan, attrs=attrs).shape == (1, 1, 3)


def test_one_element_reflected_is_itself() -> None:
    x = np.full((1, 1, 1), 5, "f4")
    grid = np.array([-3.0, 0.2, 9.0], "f4").reshape(1, 3, 1)
    attrs = GridSampleAttrs("linear", "reflection", align_corners=True)
    np.testing.assert_allclose(run_op("grid_sample", x, grid, attrs=attrs), np.full((1, 1, 3), 5))


def test_symbolic_sizes_empty_grids_and_integers() -> None:
    x, grid = np.arange(6).reshape(1, 1, 2, 3), _identity_grid(2, 3)
    dims = [("N", 1, "H", "W"), ("N", "P", "Q", 2)]
    found = run_op("grid_sample", x, grid, attrs=GridSampleAttrs("nearest"), dims=dims)
    np.testing.assert_array_equal(found, x)
    assert run_op("grid_sample", x, grid[:, :0], attrs=GridSampleAttrs()).shape == (1, 1, 0, 3)


def test_operands_that_do_not_fit() -> None:
    infer = get_op("grid_sample").infer
    x = tensor(F32, 2, 3, 4, 5)
    for grid in (tensor(F32, 2, 4, 5, 3), tensor(F32, 2, 4, 2), tensor(F32, 3, 4, 5, 2)):
        with pytest.raises(TypeCheckError):
            infer(GridSampleAttrs(), (x, grid))
    with pytest.raises(TypeCheckError, match="no mode"):
        infer(GridSampleAttrs("quintic"), (x, tensor(F32, 2, 4, 5, 2)))


def test_complex_numbers_are_chosen_and_not_interpolated() -> None:
    x = (RNG.standard_normal((1, 1, 3)) + 1j).astype("c8")
    grid = _identity_grid(3)
    np.testing.assert_array_equal(
        run_op("grid_sample", x, grid, attrs=GridSampleAttrs("nearest")), x
    )
    with pytest.raises(TypeCheckError, match="complex numbers are not interpolated"):
        get_op("grid_sample").infer(GridSampleAttrs(), (tensor(C64, 1, 1, 3), tensor(F32, 1, 3, 1)))
