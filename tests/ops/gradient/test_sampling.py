"""Gradients of sampling at computed positions against differences, by data and by positions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule, gradient_graph
from tilewright.core.errors import UnsupportedError
from tilewright.ops.conv.deformable_im2col import DeformableIm2ColAttrs
from tilewright.ops.image.grid_sample import GridSampleAttrs
from tilewright.ops.image.roi import MaxRoiPoolAttrs, RoiAlignAttrs

RNG = np.random.default_rng(10)
REGIONS = np.array([[0.3, 0.2, 3.1, 2.7], [1.3, -0.7, 4.1, 4.4], [0.1, 0.2, 0.5, 0.6]])


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


@for_each("corners", [False, True])
@for_each("padding", ["zeros", "border", "reflection"])
@for_each("mode", ["nearest", "linear", "cubic"])
def test_grid(mode: str, padding: str, corners: bool) -> None:
    grid = RNG.uniform(-1.3, 1.3, (2, 2, 3, 2))
    attrs = GridSampleAttrs(mode, padding, corners)
    without = (1,) if mode == "nearest" else ()
    check_rule("grid_sample", random(2, 2, 4, 3), grid, attrs=attrs, without=without)


def test_a_grid_whose_positions_stay() -> None:
    grid = RNG.uniform(-1.3, 1.3, (2, 2, 3, 2))
    attrs = GridSampleAttrs("cubic", "border", moves=False)
    check_rule("grid_sample", random(2, 2, 4, 3), grid, attrs=attrs)


def test_a_grid_of_three_dimensions() -> None:
    grid = RNG.uniform(-1.3, 1.3, (1, 2, 1, 2, 3))
    check_rule("grid_sample", random(1, 2, 3, 2, 3), grid, attrs=GridSampleAttrs())


def test_moved_windows() -> None:
    attrs = DeformableIm2ColAttrs((3, 2), (1, 2), (1, 0), (1, 1), 2)
    check_rule(
        "deformable_im2col",
        random(2, 4, 4, 5),
        random(2, 24, 3, 2),
        random(2, 12, 3, 2),
        attrs=attrs,
    )
    attrs = DeformableIm2ColAttrs((3, 2), (1, 2), (1, 0), (1, 1))
    check_rule("deformable_im2col", random(1, 2, 4, 5), random(1, 12, 3, 2), attrs=attrs)


@for_each("half_pixel", [False, True])
@for_each("mode", ["avg", "max"])
def test_regions(mode: str, half_pixel: bool) -> None:
    attrs = RoiAlignAttrs((2, 1), 2, 0.9, mode, half_pixel)
    images = np.array([1, 0, 1])
    check_rule("roi_align", random(2, 2, 4, 5), REGIONS, images, attrs=attrs)


def test_regions_of_unknown_samples() -> None:
    operands = (random(2, 2, 4, 5), REGIONS, np.array([1, 0, 1]))
    with pytest.raises(UnsupportedError, match="as many samples as a region has elements"):
        gradient_graph("roi_align", operands, RoiAlignAttrs((2, 1)))
    rows = np.concatenate([np.zeros((3, 1)), REGIONS], 1)
    with pytest.raises(UnsupportedError, match="known only when it runs"):
        gradient_graph("max_roi_pool", (operands[0], rows), MaxRoiPoolAttrs((2, 1)))
